/**
 * A world as data: clients with their turns, a provider with a script for each request, paths that fail, and a process that is stopped.
 * A seed draws one.
 */
import type { ProtocolId } from "../../../src/provider/Protocols.ts";
import { ids } from "../../samples/index.ts";
import { Dice } from "../Dice.ts";
import type { Away, AwayKind, Way } from "./VirtualNet.ts";

/** How the provider answers one request. */
export type Answer =
  /** A stream. `end` says how it ends; except for `whole` it does so after a share of its bytes. */
  | {
      readonly kind: "stream";
      readonly headMs: number;
      readonly words: number;
      readonly piece: number;
      readonly gapMs: number;
      readonly end: StreamEnd;
      /** Share of the bytes before the end, from 0 to 1. */
      readonly share: number;
      readonly isChunked: boolean;
      readonly says: Says;
      /** True if its text is the same as in every other such answer. */
      readonly isSame: boolean;
    }
  /** A refusal with a status. */
  | { readonly kind: "refusal"; readonly headMs: number; readonly status: number; readonly retryAfterS: number | null }
  /** A page for people in place of a stream, with a title that nothing may keep. */
  | { readonly kind: "page"; readonly headMs: number; readonly status: number }
  /** The connection is reset, or ends, before the head. */
  | { readonly kind: "no_head"; readonly headMs: number; readonly how: "reset" | "end" }
  /** Nothing comes, and the connection stays open. */
  | { readonly kind: "silent" };

/**
 * The content of a stream. `call`: text and a tool call; `cut_call`: a call whose arguments are cut, with a proper finish; `drift`: a call
 * whose fragments change their index; `thoughts`, `blank`: nothing that a user could read.
 */
export type Says = "text" | "call" | "cut_call" | "drift" | "thoughts" | "blank";

/** The host of a turn goes away right after an answer. */
export interface ThenAway {
  readonly ms: number;
  readonly kind: AwayKind;
}

/**
 * The end of a stream. `whole`: finish and end; `reset`, `cut`: the connection breaks; `stall`: it stays open and silent; `clean`: the body
 * ends as if it were whole, without a finish; `error`: the protocol's own error event; `open`: finish, and the connection stays open; `pings`: finish,
 * and pings without end in place of the last event.
 */
export type StreamEnd = "whole" | "reset" | "cut" | "stall" | "clean" | "error" | "open" | "pings";

/** What a client does with its response. */
export interface ClientWays {
  /** Leaves after this time, in milliseconds; null stays. */
  readonly leavesMs: number | null;
  /** Reads this many bytes a second; null reads everything at once. */
  readonly bytesPerSecond: number | null;
  /** Number of times that it sends a broken or refused request again. */
  readonly repeats: number;
  /** Closes the connection as soon as its protocol's finish has come, as codex does. */
  readonly closesAtFinish: boolean;
  readonly agent: string;
}

/**
 * How a model continues a text. `honest`: it repeats the quoted end and goes on; `again`: after the quoted end it says its last sentence again;
 * `anew`: it begins again from the start.
 */
export type ModelWay = "honest" | "again" | "anew";

/** One question of a client, and the provider's answers in order. Every later request of it is answered whole. */
export interface Turn {
  readonly at: number;
  readonly protocol: ProtocolId;
  readonly host: string;
  readonly client: ClientWays;
  readonly answers: ReadonlyArray<Answer>;
  /** The host goes away just before the client calls. */
  readonly beforeAway: ThenAway | null;
  /** The host goes away after the answer to the last scripted request. */
  readonly thenAway: ThenAway | null;
  /** The names of the tools that the request offers. */
  readonly tools: ReadonlyArray<string>;
  /** What the model does if it is asked to continue its text. */
  readonly model: ModelWay;
  /** True for a request of embeddings, whose answer is a document and no stream. */
  readonly isDocument: boolean;
}

/** A time in which the store cannot be written: another process holds its lock, or its disk is full. */
export interface StoreAway {
  readonly at: number;
  readonly ms: number;
  readonly kind: "locked" | "full";
}

/** A whole world. */
export interface World {
  readonly reveal: "live" | "on_complete" | null;
  readonly continueText: "ask" | "auto";
  readonly hosts: ReadonlyArray<{ readonly name: string; readonly way: Way; readonly away: ReadonlyArray<Away> }>;
  readonly clientWay: Way;
  readonly turns: ReadonlyArray<Turn>;
  /** The store, and the times in which it cannot be written. */
  readonly store: { readonly kind: "memory" | "sqlite"; readonly away: ReadonlyArray<StoreAway> };
  /** Time between two reads of the newest runs through the API, in milliseconds; null reads nothing. */
  readonly pollMs: number | null;
  /** Times in which the gateway's process does not run. */
  readonly stops: ReadonlyArray<{ readonly at: number; readonly ms: number }>;
  /** Jumps of the wall clock. */
  readonly jumps: ReadonlyArray<{ readonly at: number; readonly ms: number }>;
}

/** The answer to every request for which a turn has no script. */
export const wholeAnswer: Extract<Answer, { kind: "stream" }> = {
  kind: "stream",
  ...{
    headMs: 300,
    words: 12,
    piece: 40,
    gapMs: 20,
    end: "whole",
    share: 1,
    isChunked: true,
    says: "text",
    isSame: false,
  },
};

const agents = [
  "sim/1.0",
  "claude-cli/2.1.332 (external, cli)",
  "codex_cli_rs/0.171.0",
  "OpenAI/Python 2.8.0",
  "opencode/latest/2.0.15",
] as const;

/** Draws a world. */
export const draw = (seed: number): World => {
  const dice = new Dice(seed);
  const hosts = ["a.test", "b.test"].slice(0, dice.between(1, 2));
  // A host that was never reached is not waited for, so most worlds begin with a healthy turn at each host.
  const warm = dice.chance(0.85) ? hosts.map(warmTurn) : [];
  const store = drawStore(dice);
  // A store on SQLite looks for work each second, which costs more than the rest of a long world.
  const untilMs = store.kind === "sqlite" ? 40_000 : 3_600_000;
  const turns = [
    ...warm,
    ...dice.times(dice.between(1, 4), () => drawTurn(dice, dice.pick(["a.test", ...hosts]), untilMs)),
  ];
  return {
    reveal: dice.weighted([
      [2, null],
      [1, "live"],
      [1, "on_complete"],
    ]),
    continueText: dice.chance(0.3) ? "auto" : "ask",
    hosts: ["a.test", "b.test"].map((name) => ({
      name,
      way: drawWay(dice),
      away: dice.chance(0.35)
        ? dice.times(dice.between(1, 2), () => ({ at: drawTime(dice, untilMs), ...drawAway(dice) }))
        : [],
    })),
    clientWay: drawWay(dice),
    turns,
    store,
    pollMs: dice.chance(0.2) ? dice.pick([700, 5_000]) : null,
    stops: dice.chance(0.15) ? [{ at: drawTime(dice, untilMs), ms: dice.pick([500, 5_000, 40_000, 1_800_000]) }] : [],
    jumps: dice.chance(0.1)
      ? [{ at: drawTime(dice, untilMs), ms: dice.pick([-86_400_000, -60_000, 3_600_000, 31_536_000_000]) }]
      : [],
  };
};

const drawStore = (dice: Dice): World["store"] => {
  if (dice.chance(0.65)) return { kind: "memory", away: [] };
  const drawn = (): StoreAway => ({
    at: dice.between(0, 30_000),
    ms: dice.pick([300, 3_000, 15_000, 60_000]),
    kind: dice.pick<StoreAway["kind"]>(["locked", "locked", "full"]),
  });
  return { kind: "sqlite", away: dice.times(dice.between(0, 2), drawn) };
};

const patient: ClientWays = {
  leavesMs: null,
  bytesPerSecond: null,
  repeats: 0,
  closesAtFinish: false,
  agent: agents[0],
};

const plain = { beforeAway: null, thenAway: null, tools: [], model: "honest", isDocument: false } as const;

const warmTurn = (host: string): Turn => ({
  at: 0,
  protocol: "openai-chat",
  host,
  client: patient,
  answers: [],
  ...plain,
});

/** Most faults come soon after the turns begin, and some at any time. */
const drawTime = (dice: Dice, untilMs: number): number => dice.between(5_000, dice.chance(0.7) ? 30_000 : untilMs);

const drawWay = (dice: Dice): Way => ({
  latencyMs: dice.pick([0, 1, 20, 150]),
  packetBytes: dice.pick([7, 100, 1_460, 65_536]),
});

const drawAway = (dice: Dice): ThenAway => ({
  ms: dice.pick([150, 700, 1_500, 5_000, 20_000, 60_000, 240_000, 480_000]),
  kind: dice.pick<AwayKind>(["refused", "lost", "unnamed", "unroutable"]),
});

/** Names of tools that every JavaScript object has, too. */
const oddNames = ["constructor", "toString", "__proto__", "hasOwnProperty"] as const;

const drawTurn = (dice: Dice, host: string, untilMs: number): Turn => {
  const turn: Turn = {
    ...{ at: drawTime(dice, untilMs), host, protocol: dice.pick<ProtocolId>(["openai-chat", ...ids]) },
    client: {
      leavesMs: dice.chance(0.1) ? dice.between(0, 20_000) : null,
      bytesPerSecond: dice.chance(0.1) ? dice.pick([10, 1_000]) : null,
      repeats: dice.chance(0.25) ? dice.between(1, 3) : 0,
      closesAtFinish: dice.chance(0.1),
      agent: dice.pick(agents),
    },
    ...plain,
    model: dice.pick<ModelWay>(["honest", "honest", "again", "anew"]),
    tools: dice.chance(0.3) ? ["run", dice.pick(["read", ...oddNames])] : [],
    answers: dice.times(dice.pick([0, 1, 1, 2, 3, 5, 7]), () => drawAnswer(dice)),
  };
  return dice.weighted<() => Turn>([
    [5, () => turn],
    [3, () => refusedTurn(dice, turn)],
    [1, () => ({ ...turn, client: patient, beforeAway: drawAway(dice), answers: [{ kind: "silent" }] })],
    [2, () => stubbornTurn(dice, turn)],
    [2, () => cutTurn(dice, turn)],
    [1, () => ({ ...turn, isDocument: true, protocol: "openai-chat", tools: [], answers: [] })],
    [3, () => oddTurn(dice, turn)],
  ])();
};

/** A first answer that is whole, but not like the others. */
const oddTurn = (dice: Dice, turn: Turn): Turn => {
  const odd = (answer: Partial<typeof wholeAnswer>, protocol = turn.protocol): Turn => ({
    ...{ ...turn, protocol, client: patient },
    answers: [{ ...wholeAnswer, ...answer }],
  });
  return dice.pick([
    odd({ says: "drift" }, "openai-chat"),
    odd({ says: "call" }),
    odd({ says: "cut_call" }, dice.pick<ProtocolId>(["openai-chat", "anthropic-messages"])),
    odd({ says: dice.pick<Says>(["thoughts", "blank"]) }),
    odd({ end: "open" }),
    odd({ end: "open" }, "google-gemini"),
    odd({ end: "pings" }, "anthropic-messages"),
  ]);
};

/** Refusals and lost connections that a budget just allows, and an outage right after them. */
const refusedTurn = (dice: Dice, turn: Turn): Turn => ({
  ...{ ...turn, client: patient, thenAway: drawAway(dice) },
  answers: [
    ...dice.times(dice.between(0, 3), (): Answer => ({ kind: "refusal", headMs: 5, status: 429, retryAfterS: null })),
    ...dice.times(dice.pick([0, 0, 1, 2, 3]), (): Answer => ({ kind: "no_head", headMs: 5, how: "reset" })),
    ...(dice.chance(0.2) ? [{ kind: "silent" } as const] : []),
  ],
});

/** A provider that fails in the same way each time. */
const stubbornTurn = (dice: Dice, turn: Turn): Turn => {
  const answer = dice.pick<Answer>([
    { ...drawStream(dice), words: 20, gapMs: 10, isSame: true },
    { kind: "no_head", headMs: 5, how: "reset" },
    { kind: "page", headMs: 5, status: 502 },
  ]);
  const answers = dice.times(12, () => answer);
  if (dice.chance(0.6)) return { ...turn, answers };
  const client = { ...patient, agent: agents[1], repeats: 3 };
  return { ...turn, protocol: "anthropic-messages", client, answers };
};

/** A response that is cut once after shown text, of any length. Some clients send their request again by themselves. */
const cutTurn = (dice: Dice, turn: Turn): Turn => {
  const cut: Answer = {
    ...wholeAnswer,
    ...{ end: dice.pick<StreamEnd>(["cut", "reset"]), share: 0.3 + 0.7 * dice.next(), isSame: true },
    ...(dice.chance(0.2)
      ? { words: 9_000, piece: 4_000, gapMs: 0 }
      : { words: dice.between(20, 60), piece: dice.pick([3, 40]) }),
  };
  const client = dice.pick([
    patient,
    { ...patient, repeats: 2, agent: agents[3] },
    { ...patient, repeats: 2, agent: agents[4] },
  ]);
  const protocol = dice.pick<ProtocolId>([turn.protocol, "google-gemini", "openai-responses"]);
  return { ...turn, protocol, client, answers: [cut] };
};

const drawAnswer = (dice: Dice): Answer =>
  dice.weighted<() => Answer>([
    [6, () => drawStream(dice)],
    [
      3,
      () => ({
        kind: "refusal",
        headMs: dice.pick([1, 200, 5_000]),
        status: dice.pick([429, 500, 502, 503, 529, 400, 401, 408]),
        retryAfterS: dice.chance(0.4) ? dice.pick([0, 1, 10, 45, 300]) : null,
      }),
    ],
    [2, () => ({ kind: "no_head", headMs: dice.pick([0, 50, 3_000]), how: dice.pick(["reset", "end"]) })],
    [1, () => ({ kind: "silent" })],
    [1, () => ({ kind: "page", headMs: 20, status: dice.pick([200, 403, 502]) })],
  ])();

const drawStream = (dice: Dice): Extract<Answer, { kind: "stream" }> => ({
  kind: "stream",
  headMs: dice.pick([5, 300, 4_000, 30_000]),
  words: dice.pick([1, 5, 20, 60]),
  piece: dice.pick([3, 12, 40]),
  gapMs: dice.pick([0, 10, 80, 3_000]),
  end: dice.weighted<StreamEnd>([
    [2, "whole"],
    [3, "reset"],
    [3, "cut"],
    [2, "stall"],
    [2, "clean"],
    [2, "error"],
    [1, "open"],
    [1, "pings"],
  ]),
  share: dice.next(),
  isChunked: dice.chance(0.85),
  says: dice.weighted<Says>([
    [6, "text"],
    [2, "call"],
    [1, "cut_call"],
    [1, "drift"],
    [1, "thoughts"],
    [1, "blank"],
  ]),
  isSame: false,
});
