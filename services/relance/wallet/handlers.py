"""The wallet's methods."""

from __future__ import annotations

from typing import cast

from relance.api.common.v1 import game_pb2, reason_pb2
from relance.api.common.v1.game_pb2 import Currency
from relance.api.common.v1.reason_pb2 import Reason
from relance.api.wallet.v1 import wallet_pb2, wallet_pb2_grpc
from relance.runtime import validation
from relance.runtime.auth import AUDITOR, CASHIER, PLAYER, SERVICE, Context, Identity, identity, require
from relance.runtime.errors import Refused, reason_name
from relance.runtime.paging import PageTokens
from relance.wallet import accounts, authority
from relance.wallet.accounts import Account, Kind
from relance.wallet.credits import Credits, excluded, refill_message
from relance.wallet.ledger import MAX_BATCH, Answer, Ledger, LedgerFull, Order
from relance.wallet.limits import DAYS, FOR_GOOD, PlayerLimits
from relance.wallet.messages import transfer_message
from relance.wallet.statements import LAST, Statements

_USUAL_PAGE, _LARGEST_PAGE = 50, 1000

_SENTENCES = {
    "NO_MONEY": "{payer} has {available}; {amount} was asked for.",
    "BALANCE_TOO_LARGE": "An account holds at most {most}; {amount} more does not fit.",
    "CURRENCY_MISMATCH": "The two accounts have different currencies.",
    "KEY_REUSED": "The request_id was used before, for something else.",
    "DEPOSIT_LIMIT": "{amount} is above the player's own limit on deposits.",
}
_LONGEST_PASS_DAYS = 366


class WalletService(wallet_pb2_grpc.WalletServiceServicer):
    """For players, about their own accounts; for operators and services, about all."""

    def __init__(
        self,
        ledger: Ledger,
        statements: Statements,
        tokens: PageTokens,
        credits: Credits | None,
        limits: PlayerLimits,
        faucet_limit: int,
    ) -> None:
        """`credits`: None where no table process is known, so that nobody's chips are. `faucet_limit`: most that the
        faucet gives at once, minor units; 0: there is none.
        """
        self._ledger, self._statements, self._tokens = ledger, statements, tokens
        self._credits, self._limits = credits, limits
        self._faucet_limit = faucet_limit

    async def GetBalance(self, request: wallet_pb2.GetBalanceRequest, context: Context) -> wallet_pb2.Balance:
        """The balance of an account; the caller's own is 0 before anything has moved there."""
        account = _readable(request, identity(context))
        found = await self._statements.balance(account.name)
        if found is None:
            if account.kind is not Kind.PLAYER:
                raise _no_account(account)
            found = 0, cast(str, account.currency)
        return wallet_pb2.Balance(account=account.name, balance=found[0], currency=accounts.CURRENCIES[found[1]])

    async def ListTransfers(
        self, request: wallet_pb2.ListTransfersRequest, context: Context
    ) -> wallet_pb2.ListTransfersResponse:
        """Transfers and recorded refusals of an account, newest first, with the balance after each."""
        account = _readable(request, identity(context))
        size = validation.page_size(request.page_size, usual=_USUAL_PAGE, most=_LARGEST_PAGE)
        for field, value in (("since_us", request.since_us), ("until_us", request.until_us)):
            if value < 0:
                raise validation.invalid(field, "0 (no limit) or microseconds since 1970 UTC")
        query = (account.name, str(request.since_us), str(request.until_us))
        position = self._tokens.read(request.page_token, *query) or [LAST, LAST]
        after = (cast(int, position[0]), cast(int, position[1]))
        lines = await self._statements.page(
            account.name, request.since_us, request.until_us or LAST, after, size + 1
        )  # fmt: skip
        if lines is None:
            if account.kind is not Kind.PLAYER:
                raise _no_account(account)
            lines = []
        shown = lines[:size]
        response = wallet_pb2.ListTransfersResponse(
            transfers=[
                transfer_message(line.order, line.id, line.at, refusal=line.refusal, balance_after=line.balance_after)
                for line in shown
            ]
        )
        if len(lines) > size:
            response.next_page_token = self._tokens.make((shown[-1].at, shown[-1].id), *query)
        return response

    async def DrawFaucet(self, request: wallet_pb2.DrawFaucetRequest, context: Context) -> wallet_pb2.Transfer:
        """Give the calling player money, where the room has a faucet."""
        player = identity(context).player
        if not self._faucet_limit:
            raise Refused(reason_pb2.REASON_FAUCET_OFF, "This room gives no money away.")
        key = f"faucet/{player}/{validation.request_id(request.request_id)}"
        amount = validation.amount(request.amount, most=self._faucet_limit)
        currency = _currency_name(request.currency)
        order = Order(
            key, accounts.outside(currency), accounts.player(player, currency), amount, currency, "FAUCET", player
        )
        return await _made(self._ledger, self._limits, order, request.request_id)

    async def RequestRefill(self, request: wallet_pb2.RequestRefillRequest, context: Context) -> wallet_pb2.Refill:
        """Ask for a refill of credits (V3)."""
        player = identity(context).player
        request_id = validation.request_id(request.request_id)
        return await _known(self._credits).request_refill(player, request_id)

    async def GetCredits(self, request: wallet_pb2.GetCreditsRequest, context: Context) -> wallet_pb2.Credits:
        """How a player stands with the club."""
        standing = await _known(self._credits).standing(_whom(request.player, identity(context)))
        return wallet_pb2.Credits(
            total=standing.total,
            balance=standing.balance,
            pass_until_us=standing.pass_until,
            refills=[refill_message(row) for row in standing.refills],
            not_due=standing.not_due,
        )

    async def GetLimits(self, request: wallet_pb2.GetLimitsRequest, context: Context) -> wallet_pb2.Limits:
        """What holds a player back."""
        return await self._limits.get(_whom(request.player, identity(context)))

    async def SetDepositLimit(self, request: wallet_pb2.SetDepositLimitRequest, context: Context) -> wallet_pb2.Limits:
        """Limit one's own deposits."""
        player = identity(context).player
        period = validation.enum(request.period, wallet_pb2.LimitPeriod, "period")
        amount = validation.amount(request.amount, least=0)
        return await self._limits.set_deposit_limit(player, DAYS[period], amount)

    async def ExcludePlayer(self, request: wallet_pb2.ExcludePlayerRequest, context: Context) -> wallet_pb2.Limits:
        """Exclude oneself, or as a cashier a player who asked for it."""
        caller = identity(context)
        player = _whom(request.player, caller, CASHIER)
        if not request.for_good and request.until_us <= 0:
            raise validation.missing("until_us")
        until = FOR_GOOD if request.for_good else request.until_us
        return await self._limits.exclude(player, until, caller.subject)


class LedgerService(wallet_pb2_grpc.LedgerServiceServicer):
    """Moving money, for services and cashiers."""

    def __init__(self, ledger: Ledger, credits: Credits | None, limits: PlayerLimits) -> None:
        self._ledger, self._credits, self._limits = ledger, credits, limits

    async def BatchTransfer(
        self, request: wallet_pb2.BatchTransferRequest, context: Context
    ) -> wallet_pb2.BatchTransferResponse:
        """Make transfers, each by itself, in this order."""
        service = require(context, SERVICE).service
        if len(request.orders) > MAX_BATCH:
            raise validation.invalid("orders", f"at most {MAX_BATCH}")
        checked = [authority.check(service, asked) for asked in request.orders]
        answers = iter(await _asked(self._ledger, [order for order in checked if isinstance(order, Order)]))
        response = wallet_pb2.BatchTransferResponse()
        for asked, order in zip(request.orders, checked, strict=True):
            if isinstance(order, Order):
                answer = next(answers)
                response.answers.add(
                    key=asked.key,
                    settled=answer.settled,
                    refusal=answer.refusal,
                    recorded=answer.recorded,
                    id=answer.id,
                )
            else:
                response.answers.add(key=asked.key, refusal=reason_name(order))
        return response

    async def Deposit(self, request: wallet_pb2.DepositRequest, context: Context) -> wallet_pb2.Transfer:
        """Money from outside to a player."""
        caller = require(context, CASHIER)
        player, currency, amount = _checked(request)
        payer, payee = accounts.outside(currency), accounts.player(player, currency)
        key = f"deposit/{caller.subject}/{request.request_id}"
        order = Order(key, payer, payee, amount, currency, "DEPOSIT", caller.subject)
        return await _made(self._ledger, self._limits, order, request.request_id)

    async def Withdraw(self, request: wallet_pb2.WithdrawRequest, context: Context) -> wallet_pb2.Transfer:
        """Money from a player to outside."""
        caller = require(context, CASHIER)
        player, currency, amount = _checked(request)
        payer, payee = accounts.player(player, currency), accounts.outside(currency)
        key = f"withdraw/{caller.subject}/{request.request_id}"
        order = Order(key, payer, payee, amount, currency, "WITHDRAWAL", caller.subject)
        return await _made(self._ledger, self._limits, order, request.request_id)

    async def BuyPass(self, request: wallet_pb2.BuyPassRequest, context: Context) -> wallet_pb2.Transfer:
        """Record a bought pass and add its credits (V2)."""
        caller = require(context, CASHIER)
        request_id = validation.request_id(request.request_id)
        player = validation.player_id(request.player)
        days = validation.whole(request.days, "days", least=1, most=_LONGEST_PASS_DAYS)
        order, answer = await _known(self._credits).buy_pass(player, days, caller.subject, request_id)
        return await _told(self._limits, order, answer, request_id)


def _checked(request: wallet_pb2.DepositRequest | wallet_pb2.WithdrawRequest) -> tuple[str, str, int]:
    validation.request_id(request.request_id)
    player = validation.player_id(request.player)
    return player, _currency_name(request.currency), validation.amount(request.amount)


def _readable(request: wallet_pb2.GetBalanceRequest | wallet_pb2.ListTransfersRequest, caller: Identity) -> Account:
    """The account of a request, which the caller may read."""
    name = request.account or accounts.player(caller.player, _currency_name(request.currency))
    account = accounts.parse(name)
    if account is None:
        raise Refused(
            reason_pb2.REASON_INVALID_NAME, f"account must be a name like {accounts.PATTERN}.",
            field="account", pattern=accounts.PATTERN,
        )  # fmt: skip
    own = account.kind is Kind.PLAYER and "player" in caller.roles and account.owner == caller.subject
    if not own and not caller.has(CASHIER, AUDITOR, SERVICE):
        raise Refused(reason_pb2.REASON_NOT_YOURS, f"{name} is not your account.")
    return account


async def _asked(ledger: Ledger, orders: list[Order]) -> list[Answer]:
    try:
        return await ledger.transfer_many(orders)
    except LedgerFull as error:
        raise Refused(reason_pb2.REASON_UNAVAILABLE, f"The wallet has too much to do: {error}.") from error


async def _made(ledger: Ledger, limits: PlayerLimits, order: Order, request_id: str) -> wallet_pb2.Transfer:
    """The transfer that was made. Raises Refused with the ledger's reason."""
    (answer,) = await _asked(ledger, [order])
    return await _told(limits, order, answer, request_id)


async def _told(limits: PlayerLimits, order: Order, answer: Answer, request_id: str) -> wallet_pb2.Transfer:
    """The ledger's answer as the caller gets it. Raises Refused with its reason."""
    paying = order.payer.startswith("players/")
    if answer.settled:
        mine = answer.payer_balance if paying else answer.payee_balance
        return transfer_message(order, answer.id, answer.at, balance_after=mine)
    player = (order.payer if paying else order.payee).split("/")[1]
    if answer.refusal == "SELF_EXCLUDED":
        raise excluded(await limits.excluded_until(player))
    sentence = _SENTENCES[answer.refusal].format(
        payer=order.payer, available=answer.payer_balance, amount=order.amount, most=validation.MAX_AMOUNT
    )
    metadata: dict[str, object] = {}
    match answer.refusal:
        case "NO_MONEY":
            metadata["available"] = answer.payer_balance
        case "BALANCE_TOO_LARGE":
            metadata["max"] = validation.MAX_AMOUNT
        case "KEY_REUSED":
            metadata["key"] = request_id
        case "DEPOSIT_LIMIT":
            metadata["remaining"] = await limits.room(player)
    raise Refused(Reason.Value(f"REASON_{answer.refusal}"), sentence, **metadata)


def _whom(name: str, caller: Identity, *roles: str) -> str:
    """The player that a request is about: the caller, or any for the roles (else cashiers, auditors and services)."""
    if not name:
        return caller.player
    player = validation.player_id(name)
    own = caller.has(PLAYER) and caller.subject == player
    if not own and not caller.has(*(roles or (CASHIER, AUDITOR, SERVICE))):
        raise Refused(reason_pb2.REASON_NOT_YOURS, f"{name} is another player.")
    return player


def _known(credits: Credits | None) -> Credits:
    if credits is None:
        raise Refused(reason_pb2.REASON_UNAVAILABLE, "This wallet knows of no table process: it follows no credits.")
    return credits


def _currency_name(value: int) -> str:
    return accounts.CURRENCY_NAMES[cast(Currency.ValueType, validation.enum(value, game_pb2.Currency, "currency"))]


def _no_account(account: Account) -> Refused:
    return Refused(reason_pb2.REASON_ACCOUNT_NOT_FOUND, f"There is no account {account.name}.", account=account.name)
