#!/usr/bin/env bash
# Builds the image without Docker and without a registry, and tries it: buildah on a base made by debootstrap from this
# machine's own Debian mirror. Needs root and Debian. It works in dist/image and keeps the base there for the next time.
set -euo pipefail
cd "$(dirname "$0")/../.."

fail() {
	printf 'image-check: %s\n' "$*" >&2
	exit 1
}

step() { printf '== %s (%d s)\n' "$*" "$SECONDS"; }

[ "$(id -u)" = 0 ] || fail "needs root: debootstrap and buildah --isolation chroot do"
command -v apt-get > /dev/null || fail "needs Debian: the base is made from its packages"
if ! command -v buildah > /dev/null || ! command -v debootstrap > /dev/null; then
	step "installing buildah and debootstrap"
	apt-get update -qq
	DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends buildah debootstrap > /dev/null
fi

suite=bookworm
work=$PWD/dist/image
mkdir -p "$work/tmp"
export TMPDIR=$work/tmp BUILDAH_ISOLATION=chroot
buildah() { command buildah --root "$work/storage" --runroot "$work/run" "$@"; }
container=
mounted=
tidy() {
	[ -z "$mounted" ] || buildah umount "$container" > /dev/null || true
	[ -z "$container" ] || buildah rm "$container" > /dev/null || true
	rm -rf "$work/storage" "$work/run" "$work/tmp"
}
trap tidy EXIT

if [ ! -s "$work/base.tar" ]; then
	mirror=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' "Codename: $suite" | head -n 1)
	[ -n "$mirror" ] || mirror=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' 'Origin: Debian' | head -n 1)
	[ -n "$mirror" ] || fail "this machine's apt names no Debian mirror; run apt-get update"
	step "a base from Debian $suite"
	rm -rf "$work/base"
	debootstrap --variant=minbase --include=python3,ca-certificates "$suite" "$work/base" "$mirror" > "$work/debootstrap.log" \
		|| fail "debootstrap failed: $(tail -n 1 "$work/debootstrap.log")"
	rm -rf "$work"/base/var/cache/apt/archives/*.deb "$work"/base/var/lib/apt/lists/*
	tar -C "$work/base" -cf "$work/base.tar.new" .
	mv "$work/base.tar.new" "$work/base.tar"
	rm -rf "$work/base"
fi

step "the bases as images"
container=$(buildah from scratch)
buildah add -q "$container" "$work/base.tar" / > /dev/null
buildah commit -q "$container" localhost/relance-base > /dev/null
buildah rm "$container" > /dev/null
# The first stage wants pip as well.
container=$(buildah from --pull-never localhost/relance-base)
buildah run "$container" -- sh -c \
	'apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends python3-venv' \
	> "$work/apt.log" 2>&1 || fail "python3-venv cannot be installed into the base: $(tail -n 1 "$work/apt.log")"
buildah commit -q "$container" localhost/relance-build-base > /dev/null
buildah rm "$container" > /dev/null
container=

step "building"
authority=${PIP_CERT:-/etc/ssl/certs/ca-certificates.crt}
python3 deploy/image/pip_settings.py /run/secrets/ca > "$work/pip.conf"
version=$(sed -n 's/^version = "\(.*\)"/\1/p' pyproject.toml)
buildah bud --quiet --pull-never --layers=false -f deploy/image/Dockerfile \
	--build-arg BASE=localhost/relance-base --build-arg BUILD_BASE=localhost/relance-build-base \
	--build-arg VERSION="$version" --build-arg REVISION="$(git rev-parse HEAD 2> /dev/null || echo unknown)" \
	--secret id=pip,src="$work/pip.conf" --secret id=ca,src="$authority" \
	-t "localhost/relance:$version" . > "$work/build.log" 2>&1 || fail "the build failed: $(tail -n 5 "$work/build.log")"

container=$(buildah from --pull-never "localhost/relance:$version")
user=$(buildah inspect --format '{{.OCIv1.Config.User}}' "$container")
[[ $user =~ ^[1-9][0-9]*:[1-9][0-9]*$ ]] || fail "the image's user is '$user', not a number other than 0"
buildah inspect --format '{{.OCIv1.Config.Labels}}' "$container" | grep -q "image.version:$version" || fail "labels are missing"
[ "$(buildah run "$container" -- id -u)" = "${user%:*}" ] || fail "what runs in the image is root"

step "commands"
for service in lobby table wallet rake; do
	buildah run "$container" -- python -m "relance.$service" --help | grep -q migrate || fail "relance.$service --help"
done
buildah run "$container" -- relance --version | grep -q "$version" || fail "relance --version"
buildah run "$container" -- relance --help > /dev/null || fail "relance --help"

mounted=$(buildah mount "$container")
found=$(find "$mounted"/{bin,usr/bin,usr/local/bin,opt/relance/bin} \
	'(' -name 'gcc*' -o -name 'g++*' -o -name cc -o -name 'clang*' -o -name ld -o -name as -o -name make -o -name 'pip*' ')' -print)
[ -z "$found" ] || fail "the image holds $found"
find "$mounted/opt/relance" -path '*/grpc_tools' | grep -q . && fail "the image holds the compiler of protos"
[ -z "$(find "$mounted/opt/relance" "$mounted/etc" -newer "$work/pip.conf" -name 'pip.conf')" ] || fail "the image holds pip's settings"

step "a room on a root file system that cannot be written"
# As a pod runs it: read-only root, its own user, /tmp in memory.
unshare --mount --fork -- bash -euc '
	root=$1 user=$2
	mount --bind "$root" "$root"
	mount -o remount,bind,ro "$root"
	mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
	mount -t proc proc "$root/proc"
	mount --rbind /dev "$root/dev"
	exec chroot --userspec="$user" "$root" /usr/bin/env -i PATH=/opt/relance/bin:/usr/bin:/bin HOME=/tmp PYTHONUNBUFFERED=1 \
		sh -c "cd /tmp && ! touch /opt/relance/x 2> /dev/null && relance up --seconds 10 --bots 16 --data /tmp/room"
' room "$mounted" "$user" > "$work/room.log" 2>&1 || fail "the room failed: $(tail -n 5 "$work/room.log")"
grep -E 'audit: ' "$work/room.log" | tail -n 1
size=$(du -sm --exclude=proc "$mounted" | cut -f 1)
printf 'image-check: relance:%s user=%s size=%dMB room=ok\n' "$version" "$user" "$size"
