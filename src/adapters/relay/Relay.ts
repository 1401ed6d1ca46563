/**
 * Relays requests in one of the four protocols, byte for byte, and recovers them below a client that only sees bytes.
 *
 * The life of a relayed request:
 *
 * 1. `RelayPlan.recognise(request)` returns its plan, or undefined for a request that asks no model for a response. The embedder passes the
 *    latter through unchanged.
 * 2. `open(plan, options)` starts one run of StreamProcessor (`discardable: false`) in the ambient Scope. Each attempt uses the
 *    `RelayTransport` and is read by a `RelaySource`: its events keep their own bytes (`RelayFrames`), and a decoded copy shows what they
 *    prove. `open` succeeds with a `RelayResponse` once a head may be sent to the client. If the run ends earlier, `open` fails with a
 *    `RelayInterrupted`: its `response` is the provider's own last response, if any, and its `headers` name run, attempts and rule.
 * 3. `RelayResponse.read` returns the next bytes to send (whole events, in order, adjacent ones as one view), and `undefined` at the clean
 *    end. It fails with `RelayInterrupted` if the connection to the client must break; the embedder must not end it cleanly then. There is
 *    one reader. A read is the demand, and only the first bytes are pulled ahead of it.
 * 4. `RelayResponse.cancel` is for a client that left. It counts as the user's cancel, unless the terminal marker was already sent. The
 *    upstream is abandoned immediately. Interrupting `open` or `read` with an `InterruptSignature`, or by a disconnect of Effect's HTTP
 *    server, has the same meaning.
 * 5. The embedder closes the Scope when the client has everything or has gone, which ends the run.
 *
 * A client that may return. The embedder keeps the Scope open and runs `away`, and `back` once it has a client again. In between nothing is
 * handed over. The run continues, arriving parts are held and not shown, within the byte limits of `Reveal.ts`, and a break is replayed if
 * nothing was shown. A `read` waits meanwhile. The embedder's only reading fiber keeps reading and must not be interrupted between two
 * clients, because bytes that a read has returned are not returned again. Such a `read` returns no keep-alive. It returns bytes before
 * `back` only if the run has ended: all held bytes, and then the end. Run events are always reported. Before `open` has succeeded, use
 * `presence` instead of `away`. Once the run is `evicted`, no client can have the response any more: `back` has no effect, and the run
 * continues to its own end, or to the embedder's.
 *
 * Held bytes. `live` holds the lifecycle prefix until the first reasoning, text or call, so that no client sees two starts, and everything
 * from the first byte of a call until the terminal marker. `on_complete` holds everything until the protocol's last event or a clean end
 * after the marker, within the byte limits of `Reveal.ts`, and then continues as `live`. A break in held bytes is replayed if the policy
 * permits it and nothing was shown; reasoning that was handed over counts as text.
 *
 * Heads. `head: "first"` sends the first successful head of a stream immediately, so that a client's own clocks see the same as without the
 * relay; if the run then fails, the connection breaks. `head: "content"` waits for the first bytes and sends the head of their attempt, so
 * that an earlier failure keeps its status and body. `head: { withinMs }` works like `content` for a stream, but waits no longer than that:
 * it then sends the head of the newest attempt's stream or, if no attempt has a head, one of our own with `x-recovery-waiting`. It still
 * waits for a document in progress that came in place of a requested stream.
 *
 * Shown text (`continueText: "auto"`). A stream that breaks after it is continued if the seam can be proven. The events of a continuation
 * are rewritten, so that the client reads one response; events before the seam are the provider's own bytes. The first head remains, no
 * continuation crosses routes, and an error event of a continuation is not forwarded.
 *
 * Background responses of OpenAI outlive their connection (`RelayPlan.resumes`). After a break that follows the first event, the response
 * is resumed by GET, exactly after the last event that was read, with the request's own headers. It is never posted a second time for such
 * a break.
 *
 * Errors. An error event of the provider that ends the run is forwarded unchanged, with the provider's bytes after it, and then the
 * connection breaks; `ending` changes this. A call that cannot be read is never forwarded: if the run does not repeat it, the connection
 * breaks. A finish that reports this itself, without the call, is the provider's end and is forwarded. The relay writes no bytes of its own
 * except those of `keepAliveMs`. They are sent while the client waits for held bytes or for a decision of the run, only between events, and
 * are never a terminal marker (L5).
 */
import { Effect, Fiber, type Scope } from "effect";
import type { RunInterrupted } from "../../runtime/contract/RunEvent.ts";
import type { StreamProcessor } from "../../runtime/StreamProcessor.ts";
import { KeepAlive, pulseOf } from "./KeepAlive.ts";
import {
  awaitPathTimeout,
  type BegunRun,
  begin,
  ownHead,
  type RelayOptions,
  type RelayResponse,
} from "./RelayBeginning.ts";
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
 * @param plan the plan from `RelayPlan.recognise`
 * @throws RelayInterrupted if the run ends before a head may be sent to the client
 */
export const open = Effect.fn("Relay.open")(function* (
  plan: RelayPlan,
  options: RelayOptions,
): Effect.fn.Return<RelayResponse, RelayInterrupted, StreamProcessor | Scope.Scope> {
  const begun = yield* begin(plan, options);
  const { failing, heads, reader, run, scope, rememberSpent, waits } = begun;
  const take = reader.taking(begun.pull);
  const first = yield* Effect.forkScoped(take, { startImmediately: true });
  // A client that disconnects before the head may send its request again, marked as a retry, so the spent retries are remembered.
  const outcome = yield* Effect.raceFirst(
    Effect.catch(firstHead(first, heads, plan, options), failing),
    awaitPathTimeout(plan, options, waits),
  ).pipe(Effect.onInterrupt(() => rememberSpent(true)));
  if (outcome === "given_up") {
    yield* closeRun(scope);
    yield* rememberSpent(false);
    const { attempts } = reader;
    return yield* pathWaited({ ...run, attempts, waitedMs: options.pathPatienceMs ?? 0 });
  }
  heads.sent = plan.streaming;
  const read = yield* reading(begun, first, take, options);
  return { ...begun.responseOf(outcome), read: Effect.catch(read, failing) };
});

/** Returns the head for the client: the head of the first stream, or of the attempt that sends the first bytes. */
const firstHead = Effect.fnUntraced(function* (
  first: Fiber.Fiber<RelayBytes, RunInterrupted>,
  heads: RelayHeads,
  { streaming }: RelayPlan,
  { head = "first" }: RelayOptions,
) {
  const content = Effect.flatMap(Fiber.join(first), () =>
    // Bytes come after a head of their attempt, and a clean end after its marker.
    heads.head === undefined ? Effect.die(new Error("A body arrived before its head")) : Effect.succeed(heads.head),
  );
  if (head === "first") return yield* Effect.raceFirst(heads.awaitRelease, content);
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

/** Creates the effect that reads a response. The first bytes are taken when the run begins, all others on demand. */
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
