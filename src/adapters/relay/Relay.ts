/**
 * Relays requests that speak one of the four protocols, byte for byte, and recovers below a client that only sees bytes.
 *
 * The life of a relayed request:
 *
 * 1. `RelayPlan.recognise(request)` says what it asks for. `undefined`: it asks no model for a response, and the embedder passes
 *    it through untouched.
 * 2. `open(plan, options)` starts one run of StreamProcessor (`discardable: false`) in the ambient Scope. Each attempt goes
 *    through the `RelayTransport` and is read by a `RelaySource`: its events keep their own bytes (`RelayFrames`), a copy is
 *    decoded for what they prove. `open` succeeds with a `RelayResponse` once a head may go to the client, and fails with a
 *    `RelayInterrupted` when the run ends before: its `response` is the provider's own last response where there was one, its
 *    `headers` name run, attempts and rule.
 * 3. `RelayResponse.read` gives the next bytes that may leave (whole events, in order, adjacent ones as one view) and
 *    `undefined` at the clean end. It fails with `RelayInterrupted` where the connection to the client must break: the embedder
 *    must not end it cleanly then. There is one reader; a read is the demand, and only the first bytes are pulled ahead of it.
 * 4. `RelayResponse.cancel` is for a client that went away: a user's cancel, unless the terminal marker had left. The upstream
 *    is given up at once. Interrupting `open` or `read` with an `InterruptSignature`, or by a disconnect of Effect's HTTP
 *    server, signs the same.
 * 5. The embedder closes the Scope when the client has everything or has gone: that ends the run.
 *
 * A client that may come back. The embedder keeps the Scope open and says `away`, and `back` once it has a client again. In between
 * nothing is handed over: the run goes on, what arrives is held and not shown, within the byte limits of `Reveal.ts`, and a break in it is
 * replayed where nothing was shown. A `read` waits meanwhile: the embedder's one reading fiber goes on reading, and must not be
 * interrupted between two clients, because bytes that a read has given are not given again. Such a `read` gives no keep-alive. It
 * gives bytes before `back` only when the run has ended: then all that was held, and the end. Run events are told all the time.
 * `away` before `open` has succeeded is said by `presence`. Once `evicted`, no client can have the response any more: `back` changes
 * nothing, and the run goes on to its own end, or to the embedder's.
 *
 * What is held. `live`: the lifecycle prefix until the first reasoning, text or call, so that no client sees two starts; and
 * from the first byte of a call everything until the terminal marker. `on_complete`: everything until the protocol's last event
 * or a clean end behind the marker, within the byte limits of `Reveal.ts`, then as live. A break in held bytes is replayed where
 * the policy permits it and nothing was shown; reasoning that was handed over counts as text.
 *
 * Heads. With `head: "first"` the first successful head of a stream goes at once, so that a client's own clocks see what they
 * would see without the relay; a run that then fails breaks the connection. With `head: "content"` the head waits for the first
 * bytes and is that of their attempt, and a failure before them keeps its status and body. With `head: { withinMs }` the head of
 * a stream waits as with `content`, but no longer than that: then it is that of the newest attempt's stream or, where no attempt
 * has a head, one of our own with `x-recovery-waiting`. A document under way where a stream was asked for is waited for.
 *
 * Text that was shown (`continueText: "auto"`): a stream that breaks behind it is gone on with where the seam can be proven. The
 * events of a continuation are written anew, so that the client reads one response; those before the seam are the provider's own
 * bytes. The first head stays, no continuation crosses routes, and an error event of a continuation is not handed on.
 *
 * A background response of OpenAI outlives its connection (`RelayPlan.resumes`): a break behind its first event is read on by
 * GET, exactly behind the last event that was read, with the request's own headers. It is never posted a second time for that.
 *
 * An error event of the provider that ends the run is handed on as it came, with what the provider says behind it, and then
 * the connection breaks; `ending` says otherwise. A call that cannot be read is never
 * handed on: a run that does not repeat it breaks. A finish that says so itself, without the call, is the provider's end and is handed on. The relay writes no bytes of its own but those of `keepAliveMs`: they go while the client
 * waits for what is held or for what becomes of the run, between events only, and are never a terminal marker (L5).
 */
import { Effect, Fiber, type Scope } from "effect";
import type { RunInterrupted } from "../../runtime/contract/RunEvent.ts";
import type { StreamProcessor } from "../../runtime/StreamProcessor.ts";
import { KeepAlive, pulseOf } from "./KeepAlive.ts";
import { type BegunRun, begin, givesUp, ownHead, type RelayOptions, type RelayResponse } from "./RelayBeginning.ts";
import type { RelayHeads } from "./RelayHeads.ts";
import { pathWaited, type RelayInterrupted } from "./RelayInterrupted.ts";
import type { RelayPlan } from "./RelayPlan.ts";
import type { RelayBytes } from "./RelayReader.ts";
import { closeRun } from "./RelayWaits.ts";

export type {
  RelayedResponse,
  RelayOptions,
  RelayResponse,
  RelayRun,
  RelaySink,
} from "./RelayBeginning.ts";
export { copy } from "./RelayCopy.ts";

/**
 * Starts a run for a request.
 *
 * @param plan what `RelayPlan.recognise` made of it
 * @throws RelayInterrupted when the run ends before a head may go to the client
 */
export const open = Effect.fn("Relay.open")(function* (
  plan: RelayPlan,
  options: RelayOptions,
): Effect.fn.Return<RelayResponse, RelayInterrupted, StreamProcessor | Scope.Scope> {
  const begun = yield* begin(plan, options);
  const { failing, heads, reader, run, scope, spends, waits } = begun;
  const take = reader.taking(begun.pull);
  const first = yield* Effect.forkScoped(take, { startImmediately: true });
  // A client that gives up before the head may repeat its request, and marks the repeat as a retry.
  const outcome = yield* Effect.raceFirst(
    Effect.catch(firstHead(first, heads, plan, options), failing),
    givesUp(plan, options, waits),
  ).pipe(Effect.onInterrupt(() => spends(true)));
  if (outcome === "given_up") {
    yield* closeRun(scope);
    yield* spends(false);
    const { attempts } = reader;
    return yield* pathWaited({ ...run, attempts, waitedMs: options.pathPatienceMs ?? 0 });
  }
  heads.sent = plan.streaming;
  const read = yield* reading(begun, first, take, options);
  return { ...begun.responseOf(outcome), read: Effect.catch(read, failing) };
});

/** The head that goes to the client: of the first stream that opens, or of the attempt that the first bytes come from. */
const firstHead = Effect.fnUntraced(function* (
  first: Fiber.Fiber<RelayBytes, RunInterrupted>,
  heads: RelayHeads,
  { streaming }: RelayPlan,
  { head = "first" }: RelayOptions,
) {
  const content = Effect.flatMap(Fiber.join(first), () =>
    // Bytes come after a head of their attempt, and a clean end after its marker.
    heads.head === undefined ? Effect.die(new Error("A body came before its head")) : Effect.succeed(heads.head),
  );
  if (head === "first") return yield* Effect.raceFirst(heads.released, content);
  if (head === "content" || !streaming) return yield* content;
  return yield* Effect.timeoutOrElse(content, {
    duration: head.withinMs,
    orElse: () =>
      Effect.raceFirst(
        content,
        Effect.map(heads.late, (late) => late ?? ownHead),
      ),
  });
});

/** The reads of a response: the first bytes were taken when the run began, all others are taken on demand. */
const reading = Effect.fnUntraced(function* (
  begun: BegunRun,
  first: Fiber.Fiber<RelayBytes, RunInterrupted>,
  take: Effect.Effect<RelayBytes, RunInterrupted>,
  options: RelayOptions,
) {
  if (options.keepAliveMs !== undefined && begun.run.plan.streaming)
    return (yield* KeepAlive.make(Fiber.join(first), take, options.keepAliveMs, pulseOf(begun, options))).read;
  let began = false;
  return Effect.suspend(() => {
    if (began) return take;
    began = true;
    return Fiber.join(first);
  });
});
