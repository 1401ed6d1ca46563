/**
 * Describes every write to the store: its content, its occasions, and what waits for it (law L8). Nothing waits for a write of
 * a volatile run unless `isForEveryRun` is set.
 *
 * A new kind of entry or call does not compile until it is described here. docs/recovery.md is generated from this file.
 */
import type { Entry } from "./RunRecord.ts";
import type { RunRecorder } from "./RunRecorder.ts";

/** Outcomes of a write that an unavailable store does not accept. */
export const away = {
  kept: "What happened is kept, and written in its order as soon as the store takes writes again. Its actor goes on.",
  waits: "Its actor waits for the store, at most five seconds, and does not act without the write.",
  fails: "The call fails, and nothing has changed. The next look at the record finds the same to do.",
} as const;

/** An occasion of a write. */
export interface Occasion {
  /** Event that causes the write, or that is about to happen. */
  readonly when: string;
  /** Step that must not happen before the write is committed. */
  readonly before: string;
  readonly away: keyof typeof away;
  /** True if volatile runs wait as well. */
  readonly isForEveryRun?: true;
}

/** A kind of write, with its content and its occasions. */
export interface Write {
  readonly holds: string;
  readonly occasions: readonly [Occasion, ...Array<Occasion>];
}

/** Descriptions of the entries of a run's record. */
export const entries: Readonly<Record<Entry["_tag"], Write>> = {
  RunStarted: {
    holds: "Id, provider, budget, policy, and the digest of what the request was built from.",
    occasions: [
      { when: "A run starts.", before: "The provider is asked. An id that is on record is refused.", away: "kept" },
    ],
  },
  AttemptStarted: {
    holds: "Number, mode, first facts, and the run's side of a decision: a crash is decided on it.",
    occasions: [
      { when: "A run starts.", before: "The provider is asked.", away: "kept" },
      {
        when: "A decision or an answer starts another attempt.",
        before: "The provider is asked again.",
        away: "waits",
      },
    ],
  },
  RunWaited: {
    holds: "What the run has waited for paths and cooldowns so far, and for what it waits now.",
    occasions: [
      { when: "A run begins to wait.", before: "Nothing waits for it.", away: "kept" },
      { when: "A wait is over.", before: "Nothing waits for it.", away: "kept" },
    ],
  },
  RunRepeats: {
    holds: "The failed run whose request this one repeats, where another process has driven that one.",
    occasions: [
      {
        when: "The store has said so, to a request that says that it repeats one.",
        before: "Nothing waits for it.",
        away: "kept",
      },
      { when: "The store has said so when an attempt broke.", before: "The decision is acted on.", away: "kept" },
    ],
  },
  RunContinued: {
    holds: "Attempt, how much text stands in front of the seam, and how the seam was proven.",
    occasions: [{ when: "A continuation joins what was shown.", before: "Nothing waits for it.", away: "kept" }],
  },
  FactsRaised: {
    holds: "All facts of one attempt. On record, too, facts only grow (L1).",
    occasions: [
      { when: "A part shows more than any before it.", before: "The part is handed over.", away: "kept" },
      { when: "A guarded tool is called.", before: "Its handler starts.", away: "waits", isForEveryRun: true },
      { when: "A handler has ended.", before: "Its outcome is returned.", away: "kept", isForEveryRun: true },
      { when: "An attempt breaks.", before: "The decision is acted on.", away: "kept" },
      { when: "A run ends, or is parked.", before: "The caller is told.", away: "kept" },
      { when: "A process is gone, and `recover` decides its run.", before: "The decision is acted on.", away: "fails" },
    ],
  },
  CallHandedOver: {
    holds: "Attempt, key, the provider's id and the tool of one call.",
    occasions: [
      {
        when: "A part makes a call of a guarded or a read-only tool whole.",
        before: "The part is handed over.",
        away: "kept",
      },
      {
        when: "A part makes any other call whole, and the run is durable.",
        before: "The part is handed over.",
        away: "waits",
      },
    ],
  },
  CallJudged: {
    holds: "Whether a call of unknown outcome ran, and whose word that is.",
    occasions: [
      { when: "The tool's `verify`, or a person, has a word on it.", before: "The run is decided anew.", away: "kept" },
      { when: "A person answers for a run whose process is gone.", before: "The run is decided anew.", away: "fails" },
    ],
  },
  EvidenceNoted: {
    holds: "One step of an attempt, with its time: the first and the last ones, and how many lie between.",
    occasions: [
      {
        when: "Something is seen or done. It goes with the next write.",
        before: "Nothing waits for it.",
        away: "kept",
      },
    ],
  },
  IncidentOpened: {
    holds: "One broken attempt with everything that `decide` took, and the decision (L9).",
    occasions: [
      { when: "An attempt breaks, and a retry is decided.", before: "The retry starts.", away: "waits" },
      {
        when: "An attempt breaks, and a question or the end is decided.",
        before: "The question is put, the end told.",
        away: "kept",
      },
      { when: "A call settles after its attempt was decided.", before: "Nothing waits for it.", away: "kept" },
      { when: "A process is gone, and `recover` decides its run.", before: "The decision is acted on.", away: "fails" },
    ],
  },
  IncidentMarked: {
    holds: "What became of an incident, and the answer that it was given.",
    occasions: [
      {
        when: "Its decision, or an answer, starts another attempt.",
        before: "The provider is asked again.",
        away: "waits",
      },
      { when: "An answer ends the run.", before: "The end is told.", away: "kept" },
      {
        when: "`recover` carries an answer out, or decides anew.",
        before: "The run is parked or ends.",
        away: "fails",
      },
    ],
  },
  QuestionAsked: {
    holds: "Revision, choices, default, and when it expires.",
    occasions: [
      {
        when: "The policy leaves a decision to a person.",
        before: "`UserDecisions` is asked. If the store does not take it within five seconds, its default applies.",
        away: "kept",
        isForEveryRun: true,
      },
      { when: "A process is gone, and `recover` asks for its run.", before: "The run is parked.", away: "fails" },
    ],
  },
  QuestionAnswered: {
    holds: "The choice, and who made it: a person, the expiry or the program.",
    occasions: [
      {
        when: "The run's own `UserDecisions` answers with what starts something.",
        before: "The answer is carried out.",
        away: "waits",
        isForEveryRun: true,
      },
      { when: "The run's own `UserDecisions` answers with an end.", before: "The end is told.", away: "kept" },
      {
        when: "The command line, the page or the API answers, or the question expires.",
        before: "The answer is confirmed.",
        away: "fails",
      },
    ],
  },
  QuestionStillOpen: {
    holds: "Nothing: where the question was answered meanwhile, nothing of its write is taken.",
    occasions: [
      {
        when: "`recover` puts another question in the place of an open one, decides its run anew, or ends it.",
        before: "The run is parked or ends.",
        away: "fails",
      },
    ],
  },
  RunParked: {
    holds: "Why no process drives the run.",
    occasions: [
      {
        when: "A stream ends and its run is kept: its question is open, or its caller has left it.",
        before: "The stream fails with `parked`.",
        away: "kept",
      },
      {
        when: "`recover` leaves a retry, an answer or a question for `takeUp`.",
        before: "The run is given back.",
        away: "fails",
      },
    ],
  },
  RunResumed: {
    holds: "That a process drives the run again.",
    occasions: [
      { when: "`takeUp` has claimed the run and rebuilt it.", before: "Anything of the run goes on.", away: "waits" },
    ],
  },
  RunEnded: {
    holds: "State, reason, incident and time of the one end (L7).",
    occasions: [
      { when: "A run ends.", before: "The caller is told.", away: "kept" },
      {
        when: "A process is gone, and its run cannot go on or is given up.",
        before: "The run is given back.",
        away: "fails",
      },
      {
        when: "A process is gone, and its run was volatile: an assumed end, which the entries of that process replace.",
        before: "The run is given back.",
        away: "fails",
      },
    ],
  },
};

/** Calls that change nothing in the store, and `write`, which `entries` describes. */
type Others =
  | "durable"
  | "waitMs"
  | "claimWaitMs"
  | "write"
  | "run"
  | "runs"
  | "incidents"
  | "digest"
  | "onLost"
  | "hurry";

/** Descriptions of the other calls that change the store, and of a durable recorder's own writes. */
export const calls: Readonly<
  Record<Exclude<keyof RunRecorder["Service"], Others> | "open" | "heartbeat" | "retention" | "close", Write>
> = {
  claim: {
    holds: "This process's lease, as the owner of one run.",
    occasions: [
      { when: "`takeUp` or `recover` takes a run over.", before: "What is due of it is read and done.", away: "fails" },
    ],
  },
  release: {
    holds: "No owner.",
    occasions: [{ when: "A claimed run could not go on here.", before: "Another process may claim it.", away: "kept" }],
  },
  orphans: {
    holds: "A fence for every lease that is over: its process writes nothing of its runs any more.",
    occasions: [{ when: "`recover` looks for runs that no process drives.", before: "They are found.", away: "fails" }],
  },
  processEnded: {
    holds: "A fence for every lease of a process that has ended.",
    occasions: [
      {
        when: "A supervisor tells a worker that a sibling has died.",
        before: "Its runs are recovered, without waiting for the end of its lease.",
        away: "fails",
      },
    ],
  },
  shared: {
    holds:
      "What processes of other machines have to know: what a failed request has spent and its client was told, by a digest; a wait that a provider announced; a run that its client cancels at another gateway.",
    occasions: [
      { when: "A gateway's run fails.", before: "Its client is told, at most half a second.", away: "fails" },
      { when: "A provider announces a wait.", before: "Nothing waits for it.", away: "fails" },
      { when: "A client cancels a run that another gateway drives.", before: "It is confirmed.", away: "fails" },
    ],
  },
  pacing: {
    holds:
      "What a group of runs has spent, until it was idle for an hour; how many tokens of retries a provider has, until nobody has drawn one for an hour.",
    occasions: [
      {
        when: "A run of a group breaks whose budget is limited.",
        before: "It is decided, for as long as a record is waited for.",
        away: "fails",
      },
      {
        when: "A response breaks that would be tried again.",
        before: "It is decided, at most half a second.",
        away: "fails",
      },
    ],
  },
  cancels: {
    holds: "The id of a run that a person cancels, for an hour at most: the process that drives it takes the row away.",
    occasions: [
      { when: "A person cancels a run that another process drives.", before: "That process is told.", away: "fails" },
    ],
  },
  answer: {
    holds: "`QuestionAnswered`, compared and set in one transaction.",
    occasions: [{ when: "An answer comes, from whichever process.", before: "It is confirmed.", away: "fails" }],
  },
  probe: {
    holds:
      "What stands there already: the version of the tables. On a server whose disk was full also a row as long as a run's, which is taken back.",
    occasions: [
      {
        when: "A gateway's writes fail, once a second until one is taken; also where none was made for 30 s.",
        before: "Its health is told.",
        away: "fails",
      },
    ],
  },
  prune: {
    holds: "Nothing: ended runs go, with their incidents and questions.",
    occasions: [{ when: "`runs prune` is asked for.", before: "It says how many.", away: "fails" }],
  },
  open: {
    holds: "Tables, their version, and the key of the digests.",
    occasions: [{ when: "A database is opened that lacks them.", before: "Anything else is written.", away: "fails" }],
  },
  heartbeat: {
    holds: "The lease: how often it was renewed, and when it ends by this machine's clock.",
    occasions: [
      {
        when: "A first write needs a lease; then three times a lease, while runs are driven or watched.",
        before: "A process that watches the lease takes it for over.",
        away: "kept",
      },
    ],
  },
  retention: {
    holds: "Nothing: old runs and leases go.",
    occasions: [
      { when: "At the start, and once an hour.", before: "Nothing waits for it.", away: "fails" },
      { when: "`runs retain` is asked for.", before: "It says how many.", away: "fails" },
    ],
  },
  close: {
    holds: "A fence for the own lease.",
    occasions: [
      {
        when: "The recorder's scope closes.",
        before: "The database is closed. Other processes may claim its runs at once.",
        away: "fails",
      },
    ],
  },
};
