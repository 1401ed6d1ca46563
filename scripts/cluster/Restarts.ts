/**
 * Ends one gateway after the other while there is load, and starts each again: as it was, or rolled from one version to the other.
 */
import { seeded } from "../../test/Seeded.ts";
import type { Deaths } from "./Deaths.ts";
import type { Ended } from "./Diary.ts";
import { type Gateway, newer, type Program } from "./Gateways.ts";

/** From one look at the gateways to the next, in milliseconds. */
const lookMs = 50;

/** Of the gateways that are rolled, so many are killed; the others are told to end. */
const killedShare = 0.3;

/** How one gateway is ended, and as what it starts again. */
interface Restart {
  readonly gateway: Gateway;
  readonly how: "kill" | "stop";
  readonly program: Program;
}

/** Draws the next restart; undefined where there is no gateway. */
type Draw = () => Restart | undefined;

const versionOf = ({ versions }: Gateway): Program["version"] | undefined => versions.at(-1);

/** Any of them is killed, and starts as it was. */
export const killing = (gateways: ReadonlyArray<Gateway>, seed: number): Draw => {
  const random = seeded(seed);
  return () => {
    const gateway = gateways[Math.floor(random() * gateways.length)];
    return gateway === undefined ? undefined : { gateway, how: "kill", program: newer };
  };
};

/** All begin in the older version, and are rolled one after the other: to the newer one, then back, and so on. */
export const rolling = (gateways: ReadonlyArray<Gateway>, seed: number, older: Program): Draw => {
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

/** What restarts need of the play, and what they write down. */
export interface Restarts {
  readonly gateways: ReadonlyArray<Gateway>;
  readonly deaths: Deaths;
  readonly kills: Array<Ended>;
  readonly stops: Array<Ended>;
  readonly crashes: Array<string>;
  /** The load has ended. */
  readonly isOver: () => boolean;
}

/** Ends one, and says when it was gone. */
const end = async ({ crashes, deaths, gateways, kills, stops }: Restarts, { gateway, how }: Restart): Promise<void> => {
  const [label, life, at] = [gateway.label, gateway.life(), Date.now()];
  const ended: Ended = { at, goneAt: Number.POSITIVE_INFINITY, node: gateways.indexOf(gateway), life };
  if (how === "kill") await gateway.kill();
  else await gateway.stop().catch((error: unknown) => void crashes.push(wordsOf(error)));
  const goneAt = Date.now();
  (how === "kill" ? kills : stops).push({ ...ended, goneAt });
  // One that was told to end has time for its runs; what it leaves all the same was left when it was gone.
  await deaths.killed(label, how === "kill" ? at : goneAt);
};

const wordsOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

const slept = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/**
 * Restarts one gateway after the other until the load has ended.
 *
 * @param everyMs from one end of a gateway to the next, in milliseconds, or longer
 */
export const restart = async (world: Restarts, draw: Draw, everyMs: number): Promise<void> => {
  const { crashes, gateways, isOver } = world;
  const starts: Array<Promise<void>> = [];
  for (let at = Date.now() + everyMs; !isOver(); at = Math.max(at, Date.now()) + everyMs) {
    // All are there when one is ended: so there is always one that lives on for longer than until the next end.
    while (!isOver() && (Date.now() < at || !gateways.every(({ isReady }) => isReady))) await slept(lookMs);
    const chosen = isOver() ? undefined : draw();
    if (chosen === undefined) break;
    await end(world, chosen);
    starts.push(chosen.gateway.start(chosen.program).catch((error: unknown) => void crashes.push(wordsOf(error))));
  }
  await Promise.all(starts);
};
