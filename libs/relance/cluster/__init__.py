"""The manifests of deploy/k8s, run on one machine without a cluster: `relance cluster`."""
