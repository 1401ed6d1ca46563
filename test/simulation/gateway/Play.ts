/** Plays a world: a whole gateway in this process, in virtual time, between scripted clients and a scripted provider. */
import { createHash } from "node:crypto";
import { Context, Effect, Exit, Layer, Logger, References, Scope } from "effect";
import { Gateway } from "../../../src/gateway/Gateway.ts";
import { type GatewayProgram, layer } from "../../../src/gateway/GatewayLayers.ts";
import { lineOf } from "../../../src/gateway/log/LogLine.ts";
import * as RecoveryPage from "../../../src/gateway/page/RecoveryPage.ts";
import { RunRecorder } from "../../../src/recorder/RunRecorder.ts";
import { upstreamsAt } from "../../gateway/GatewayCases.ts";
import { Client, poll } from "./Client.ts";
import type { History, Read } from "./History.ts";
import { type Machine, onMachine } from "./Machine.ts";
import { Provider } from "./Provider.ts";
import { Host } from "./VirtualNet.ts";
import { TimeStandsStill } from "./VirtualTime.ts";
import type { World } from "./World.ts";

/** Virtual time after which a world is given up. No clock of a run is longer than the waits that its budget allows. */
export const worldMsMax = 4 * 3_600_000;

/** Time for which a host was away when its client calls, in milliseconds. */
const beforeMs = 500;

/** Virtual time for which the gateway stays up after the last response. */
const quietMs = 90_000;

/** A world that was played. */
export interface Played {
  readonly history: History;
  /** Everything that happened, in order. */
  readonly story: ReadonlyArray<string>;
  /** Digest of the story: the same world always has the same. */
  readonly digest: string;
}

/** Plays a world. @param seed decides what the gateway itself draws, for example its jitter */
export const play = (world: World, seed: number): Promise<Played> =>
  onMachine(seed, async (machine) => {
    const story: Array<string> = [];
    const log = (line: string) => void story.push(`${Math.round(machine.time.now)} ${line}`);
    const history = await playOn(machine, world, log);
    return { history, story, digest: createHash("sha256").update(story.join("\n")).digest("hex").slice(0, 16) };
  });

const programOf = (world: World): GatewayProgram => ({
  db: world.store.kind === "memory" ? "memory" : ":memory:",
  port: 0,
  upstreams: upstreamsAt("http://a.test"),
  named: [{ name: "other", url: "http://b.test", headers: [] }],
  continueText: world.continueText,
  ...(world.reveal === null ? {} : { reveal: world.reveal }),
});

const playOn = async (
  { disk, net, time, timers }: Machine,
  world: World,
  log: (line: string) => void,
): Promise<History> => {
  const hosts: ReadonlyArray<Host> = world.hosts.map(
    (host) => new Host(time, host, (end) => provider.serve(host.name, end)),
  );
  const provider = new Provider(world, time, log, (name) => hosts.find((it) => it.name === name));
  for (const host of hosts) net.add(host);
  const lines: Array<string> = [];
  const logger = Logger.make(({ cause, date, fiber, logLevel, message }) => {
    const annotations = fiber.getRef(References.CurrentLogAnnotations);
    const line = lineOf("text", { cause, date, logLevel, message, annotations }).replace(/^\S+ /, "");
    lines.push(line);
    log(`log ${line}`);
  });
  const logs = Layer.merge(Logger.layer([logger]), Layer.succeed(References.MinimumLogLevel, "Info"));
  const scope = Scope.makeUnsafe();
  const built = Layer.buildWithScope(Layer.provide(layer(programOf(world), RecoveryPage.layer), logs), scope);
  /** Runs an effect of the gateway's process to its end. */
  const complete = async <A, E>(effect: Effect.Effect<A, E>, limitMs: number): Promise<Exit.Exit<A, E> | undefined> => {
    let exit: Exit.Exit<A, E> | undefined;
    time.owner = "gateway";
    Effect.runFork(effect).addObserver((it) => {
      exit = it;
    });
    await time.runUntil(() => exit !== undefined, time.now + limitMs);
    return exit;
  };
  const started = await complete(built, 10_000);
  if (started === undefined || !Exit.isSuccess(started)) throw new Error(`the gateway did not start: ${started}`);
  const services = started.value;
  const { port } = Context.get(services, Gateway);
  const clientHost = new Host(time, { name: "client", way: world.clientWay, away: [] }, () => undefined);
  const clients = world.turns.map(
    (turn, number) => new Client(turn, number, { time, log, connect: () => net.call(port, clientHost) }),
  );
  for (const { at, kind, ms } of world.store.away) {
    const set = (away: typeof disk.away) => () => {
      disk.away = away;
    };
    time.after(at, set(kind), "world");
    time.after(at + ms, set(undefined), "world");
  }
  const reads: Array<Read> = [];
  if (world.pollMs !== null) poll({ time, log, connect: () => net.call(port, clientHost) }, world.pollMs, reads);
  for (const { at, beforeAway, host } of world.turns)
    if (beforeAway !== null)
      time.after(at - beforeMs, () => hosts.find(({ name }) => name === host)?.goAway(beforeAway), "world");
  for (const { at, ms } of world.stops) time.after(at, () => time.stop(ms), "world");
  for (const { at, ms } of world.jumps)
    time.after(
      at,
      () => {
        time.wallOffset += ms;
      },
      "world",
    );
  let stuck: string | undefined;
  try {
    const isDone = await time.runUntil(() => clients.every((it) => it.isDone), worldMsMax);
    if (!isDone) stuck = `a response did not end within ${worldMsMax} ms`;
    const lastStop = Math.max(0, ...world.stops.map(({ at, ms }) => at + ms));
    await time.runUntil(() => false, Math.max(time.now, lastStop) + quietMs);
  } catch (error) {
    if (!(error instanceof TimeStandsStill)) throw error;
    stuck = error.message;
  }
  const read = await complete(Effect.orDie(Context.get(services, RunRecorder).runs({ limit: 10_000 })), 60_000);
  const stored = disk.contents();
  const ms = time.now;
  const closed = stuck === undefined ? await complete(Scope.close(scope, Exit.void), 120_000) : undefined;
  if (stuck === undefined && closed === undefined) stuck = "the gateway did not stop";
  await time.runUntil(() => false, time.now + 300_000);
  return {
    ...{ world, lines, ms, reads, stored, stuck },
    asked: provider.asked,
    calls: clients.flatMap(({ calls }) => calls),
    connects: new Map(hosts.map(({ connects, name }) => [name, connects])),
    away: new Map(hosts.map(({ away, name }) => [name, away])),
    records: read !== undefined && Exit.isSuccess(read) ? read.value : [],
    left: { sockets: net.open, timers: timers.size },
  };
};
