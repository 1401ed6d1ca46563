/**
 * Relays requests in one of the protocols, byte for byte, and recovers them for a client that sees only bytes.
 *
 * Life of a relayed request:
 *
 * 1. `RelayPlan.recognise(request)` returns a plan, or undefined for a request that does not ask a model for a response. The embedder
 *    forwards such a request unchanged.
 * 2. `open(plan, options)` starts one run of StreamProcessor (`discardable: false`) in the current Scope. Each attempt sends its request
 *    through the `RelayTransport`. A `RelaySource` reads the response: events keep their bytes (`RelayFrames`), and a decoded copy shows
 *    what they prove. `open` succeeds with a `RelayResponse` once a head may be sent to the client. If the run ends before, `open` fails
 *    with a `RelayInterrupted`: its `response` is the provider's last response, if there is one, and its `headers` name run, attempts and
 *    rule.
 * 3. `RelayResponse.read` returns the next bytes to send (whole events, in order, adjacent ones as one view), and `undefined` at the clean
 *    end. It fails with `RelayInterrupted` if the connection to the client must break; the embedder must then not end the body cleanly. A
 *    response has one reader. Bytes are pulled only when a read asks for them, except the first ones.
 * 4. `RelayResponse.cancel` is called if the client has left. It counts as the user's cancel, unless the terminal marker was already sent.
 *    The upstream request is aborted at once. Interrupting `open` or `read` with an `InterruptSignature`, or by a disconnect in Effect's
 *    HTTP server, has the same effect.
 * 5. The embedder closes the Scope when the client has received everything or has left. That ends the run.
 *
 * Clients that may return. If the client leaves, the embedder keeps the Scope open and runs `away`, and it runs `back` once it has a client
 * again. Between the two, no output is delivered. The run continues, its output is held within the byte limits of `Reveal.ts`, and a break
 * is replayed if nothing was shown. A `read` waits during that time. The embedder has a single reading fiber, which must not be interrupted
 * between two clients, because bytes that a read has returned are not returned again. A waiting `read` returns no keep-alive. It returns
 * before `back` only if the run has ended: first all held bytes, then the end. Run events are always reported. Before `open` has succeeded,
 * use `presence` instead of `away`. Once the run is `evicted`, no client can get the response any more: `back` has no effect, and the run
 * continues until it ends or the embedder ends it.
 *
 * Held bytes. `live` holds two things: lifecycle events until the first reasoning, text or call, so that no client sees two starts, and
 * everything from the first byte of a call until the terminal marker. `on_complete` holds everything until the protocol's last event, or
 * until a clean end after the marker. If that exceeds the byte limits of `Reveal.ts`, it continues like `live`. A break in held bytes is
 * replayed if the policy permits that and nothing was shown. Delivered reasoning counts as text.
 *
 * Heads. `head: "first"` sends the first successful head of a stream at once, so that the client's own timeouts behave as without the
 * relay. If the run then fails, the connection breaks. `head: "content"` waits for the first bytes and sends the head of their attempt, so
 * that an earlier failure keeps its status and body. `head: { withinMs }` does the same for a stream, but waits no longer than that. It
 * then sends the head of the newest attempt's stream or, if no attempt has a head, the relay's own head with `x-recovery-waiting`. If a
 * document is arriving in place of the requested stream, it still waits for that document.
 *
 * Shown text (`continueText: "auto"`). A stream that breaks after shown text is continued if the seam, the place where the continuation
 * joins that text, can be proven. The events of the continuation are rewritten, so that the client reads one response; events before the
 * seam keep the provider's bytes. The first head remains, a continuation stays on its route, and an error event in a continuation is not
 * forwarded.
 *
 * Background responses of OpenAI outlive their connections (`RelayPlan.resumes`). After a break that follows the first event, the response
 * is resumed by a GET, with the headers of the original request, right after the last event that was read. The request is never posted
 * again because of such a break.
 *
 * Errors. If the run ends with an error event of the provider, the event and the provider's bytes after it are forwarded unchanged, and
 * then the connection breaks; `ending` changes this. A call that cannot be parsed is never forwarded: if the run does not retry it, the
 * connection breaks. A finish that itself reports the invalid call, without containing it, is the provider's own end and is forwarded. The
 * relay adds no bytes except keep-alives (`keepAliveMs`). They are sent while the client waits for held bytes or for a decision of the run,
 * only between events, and are never a terminal marker (L5).
 */
import { Effect, Fiber, type Scope } from "effect";
import type { RunInterrupted } from "../../runtime/contract/RunEvent.ts";
import type { StreamProcessor } from "../../runtime/StreamProcessor.ts";
import { KeepAlive, pulseOf } from "./KeepAlive.ts";
import {
  awaitPathTimeout,
  type BegunRun,
  begin,
  ownHeadOf,
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
  // A client that disconnects before the head may retry its request, so the number of spent retries is remembered.
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

/** Returns the head for the client: the first successful head of a stream, or the head of the attempt whose bytes are sent first. */
const firstHead = Effect.fnUntraced(function* (
  first: Fiber.Fiber<RelayBytes, RunInterrupted>,
  heads: RelayHeads,
  plan: RelayPlan,
  { head = "first" }: RelayOptions,
) {
  const content = Effect.flatMap(Fiber.join(first), () =>
    // Bytes always follow a head of their attempt, and a clean end follows the terminal marker.
    heads.head === undefined ? Effect.die(new Error("A body arrived before its head")) : Effect.succeed(heads.head),
  );
  if (head === "first") return yield* Effect.raceFirst(heads.awaitRelease, content);
  if (head === "content" || !plan.streaming) return yield* content;
  return yield* Effect.timeoutOrElse(content, {
    duration: head.withinMs,
    orElse: () =>
      Effect.raceFirst(
        content,
        Effect.map(heads.late, (late) => late ?? ownHeadOf(plan)),
      ),
  });
});

/** Creates the reads of a response. The first bytes are taken when the run starts, all further bytes on demand. */
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
