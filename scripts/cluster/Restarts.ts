/**
 * Ends one gateway after another under load and starts each again, either unchanged or in the other of two versions.
 */
import { seeded } from "../../test/Seeded.ts";
import type { Deaths } from "./Deaths.ts";
import type { Ended } from "./Diary.ts";
import { type Gateway, newer, type Program } from "./Gateways.ts";

/** Polling interval, in milliseconds. */
const lookMs = 50;

/** Share of rolled gateways that are killed. The others are stopped with SIGTERM. */
const killedShare = 0.3;

/** The way one gateway ends, and the program it starts as. */
interface Restart {
  readonly gateway: Gateway;
  readonly how: "kill" | "stop";
  readonly program: Program;
}

/** Draws the next restart; undefined if there is no gateway. */
type Draw = () => Restart | undefined;

const versionOf = ({ versions }: Gateway): Program["version"] | undefined => versions.at(-1);

/** Draws a gateway to be killed and started unchanged. */
export const drawKills = (gateways: ReadonlyArray<Gateway>, seed: number): Draw => {
  const random = seeded(seed);
  return () => {
    const gateway = gateways[Math.floor(random() * gateways.length)];
    return gateway === undefined ? undefined : { gateway, how: "kill", program: newer };
  };
};

/** Draws gateways that roll from the older version to the newer one, then back, and so on. */
export const drawRolls = (gateways: ReadonlyArray<Gateway>, seed: number, older: Program): Draw => {
  const random = seeded(seed);
  let program = newer;
  const others = () => gateways.filter((gateway) => versionOf(gateway) !== program.version);
  return () => {
    if (others().length === 0) program = program === newer ? older : newer;
    const left = others();
    const gateway = left[Math.floor(random() * left.length)];
    return gateway === undefined ? undefined : { gateway, how: random() < killedShare ? "kill" : "stop", program };
  };
};

/** The state of a play that restarts read and write. */
export interface Restarts {
  readonly gateways: ReadonlyArray<Gateway>;
  readonly deaths: Deaths;
  readonly kills: Array<Ended>;
  readonly stops: Array<Ended>;
  readonly crashes: Array<string>;
  /** True once the load has ended. */
  readonly isOver: () => boolean;
}

/** Ends one gateway and records when it was gone. */
const end = async ({ crashes, deaths, gateways, kills, stops }: Restarts, { gateway, how }: Restart): Promise<void> => {
  const [label, life, at] = [gateway.label, gateway.life(), Date.now()];
  const ended: Ended = { at, goneAt: Number.POSITIVE_INFINITY, node: gateways.indexOf(gateway), life };
  if (how === "kill") await gateway.kill();
  else await gateway.stop().catch((error: unknown) => void crashes.push(wordsOf(error)));
  const goneAt = Date.now();
  (how === "kill" ? kills : stops).push({ ...ended, goneAt });
  // A stopped gateway has time to finish its runs, so the runs it left were left when it was gone.
  await deaths.recordKill(label, how === "kill" ? at : goneAt);
};

const wordsOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/**
 * Restarts one gateway after another until the load has ended.
 *
 * @param everyMs minimum interval between two ends, in milliseconds
 */
export const restart = async (world: Restarts, draw: Draw, everyMs: number): Promise<void> => {
  const { crashes, gateways, isOver } = world;
  const starts: Array<Promise<void>> = [];
  for (let at = Date.now() + everyMs; !isOver(); at = Math.max(at, Date.now()) + everyMs) {
    // End one only while all are ready, so that another always lives longer than until the next end.
    while (!isOver() && (Date.now() < at || !gateways.every(({ isReady }) => isReady))) await sleep(lookMs);
    const chosen = isOver() ? undefined : draw();
    if (chosen === undefined) break;
    await end(world, chosen);
    starts.push(chosen.gateway.start(chosen.program).catch((error: unknown) => void crashes.push(wordsOf(error))));
  }
  await Promise.all(starts);
};
