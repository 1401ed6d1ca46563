/**
 * Describes every write to the store: its content, its occasion, and the steps that wait for it (law L8). No step waits for a write of a
 * volatile run unless `isForEveryRun` is set.
 *
 * A new kind of entry or call does not compile until it is described here. docs/recovery.md is generated from this file.
 */
import type { Entry } from "./RunRecord.ts";
import type { RunRecorder } from "./RunRecorder.ts";

/** Consequences if an unavailable store does not accept a write. */
export const away = {
  kept: "The entry is kept, and written in order as soon as the store accepts writes again. The writer continues.",
  waits: "The writer waits for the store, at most five seconds, and does not act without the write.",
  fails: "The call fails, and nothing changes. The next check of the record finds the same work to do.",
} as const;

/** The event that causes a write, and the step that waits for it. */
export interface Occasion {
  /** Event that causes the write, or the event that the write precedes. */
  readonly when: string;
  /** Step that must not start before the write is committed. */
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
    holds: "Id, provider, budget, policy, and the digest of the request's source.",
    occasions: [
      { when: "A run starts.", before: "The provider is asked. An id that is on record is refused.", away: "kept" },
    ],
  },
  AttemptStarted: {
    holds: "Number, mode, first facts, and the run facts that a decision after a crash uses.",
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
    holds: "Time that the run has waited for paths and cooldowns, and its current wait.",
    occasions: [
      { when: "A run starts to wait.", before: "Nothing waits for it.", away: "kept" },
      { when: "A wait ends.", before: "Nothing waits for it.", away: "kept" },
    ],
  },
  RunRepeats: {
    holds: "The failed run whose request this one repeats, if another process owned that run.",
    occasions: [
      {
        when: "A request says that it repeats a run, and the store confirms it.",
        before: "Nothing waits for it.",
        away: "kept",
      },
      {
        when: "An attempt breaks, and the store names the repeated run.",
        before: "The decision is carried out.",
        away: "kept",
      },
    ],
  },
  RunContinued: {
    holds: "Attempt, amount of text before the seam, and the proof of the seam.",
    occasions: [{ when: "A continuation joins the shown text.", before: "Nothing waits for it.", away: "kept" }],
  },
  FactsRaised: {
    holds: "All facts of one attempt. Recorded facts only grow (L1).",
    occasions: [
      { when: "A part raises `shown`.", before: "The part is delivered.", away: "kept" },
      { when: "A guarded tool is called.", before: "Its handler starts.", away: "waits", isForEveryRun: true },
      { when: "A handler ends.", before: "Its outcome is returned.", away: "kept", isForEveryRun: true },
      { when: "An attempt breaks.", before: "The decision is carried out.", away: "kept" },
      { when: "A run ends, or is parked.", before: "The caller is notified.", away: "kept" },
      {
        when: "A process is gone, and `recover` decides its run.",
        before: "The decision is carried out.",
        away: "fails",
      },
    ],
  },
  CallHandedOver: {
    holds: "Attempt, key, the provider's id and the tool of one call.",
    occasions: [
      {
        when: "A part completes a call of a guarded or a read-only tool.",
        before: "The part is delivered.",
        away: "kept",
      },
      {
        when: "A part completes any other call, and the run is durable.",
        before: "The part is delivered.",
        away: "waits",
      },
    ],
  },
  CallJudged: {
    holds: "The verdict on a call of unknown outcome, and its source.",
    occasions: [
      { when: "The tool's `verify`, or a person, gives a verdict.", before: "The run is decided again.", away: "kept" },
      { when: "A person answers for a run whose process is gone.", before: "The run is decided again.", away: "fails" },
    ],
  },
  EvidenceNoted: {
    holds: "One step of an attempt, with its time: the first and the last steps, and the number of steps between them.",
    occasions: [
      {
        when: "A step happens. It is written with the next write.",
        before: "Nothing waits for it.",
        away: "kept",
      },
    ],
  },
  IncidentOpened: {
    holds: "One broken attempt with all inputs of `decide`, and the decision (L9).",
    occasions: [
      { when: "An attempt breaks, and a retry is decided.", before: "The retry starts.", away: "waits" },
      {
        when: "An attempt breaks, and a question or the end is decided.",
        before: "The question is asked, or the end is reported.",
        away: "kept",
      },
      { when: "A call settles after its attempt was decided.", before: "Nothing waits for it.", away: "kept" },
      {
        when: "A process is gone, and `recover` decides its run.",
        before: "The decision is carried out.",
        away: "fails",
      },
    ],
  },
  IncidentMarked: {
    holds: "The outcome of an incident, and the answer to its question.",
    occasions: [
      {
        when: "Its decision, or an answer, starts another attempt.",
        before: "The provider is asked again.",
        away: "waits",
      },
      { when: "An answer ends the run.", before: "The end is reported.", away: "kept" },
      {
        when: "`recover` carries out an answer, or decides again.",
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
        before:
          "`UserDecisions` is asked. If the store does not accept the question within five seconds, its default applies.",
        away: "kept",
        isForEveryRun: true,
      },
      { when: "A process is gone, and `recover` asks for its run.", before: "The run is parked.", away: "fails" },
    ],
  },
  QuestionAnswered: {
    holds: "The choice, and its source: a person, the expiry or the program.",
    occasions: [
      {
        when: "The run's own `UserDecisions` gives an answer that starts work.",
        before: "The answer is carried out.",
        away: "waits",
        isForEveryRun: true,
      },
      {
        when: "The run's own `UserDecisions` gives an answer that ends the run.",
        before: "The end is reported.",
        away: "kept",
      },
      {
        when: "The command line, the page or the API answers, or the question expires.",
        before: "The answer is confirmed.",
        away: "fails",
      },
    ],
  },
  QuestionStillOpen: {
    holds: "Nothing. If the question was answered meanwhile, the write that contains this entry is refused as a whole.",
    occasions: [
      {
        when: "`recover` replaces an open question, decides its run again, or ends it.",
        before: "The run is parked or ends.",
        away: "fails",
      },
    ],
  },
  RunParked: {
    holds: "The reason why no process owns the run.",
    occasions: [
      {
        when: "A stream ends and its run is kept: its question is open, or its caller has left.",
        before: "The stream fails with `parked`.",
        away: "kept",
      },
      {
        when: "`recover` leaves a retry, an answer or a question for `takeUp`.",
        before: "The run is released.",
        away: "fails",
      },
    ],
  },
  RunResumed: {
    holds: "Only that a process owns the run again.",
    occasions: [
      { when: "`takeUp` has claimed the run and rebuilt it.", before: "Any part of the run continues.", away: "waits" },
    ],
  },
  RunEnded: {
    holds: "State, reason, incident and time of the one end (L7).",
    occasions: [
      { when: "A run ends.", before: "The caller is notified.", away: "kept" },
      {
        when: "A process is gone, and its run cannot continue or is abandoned.",
        before: "The run is released.",
        away: "fails",
      },
      {
        when: "A process is gone, and its run was volatile. The end is assumed, and entries of that process replace it.",
        before: "The run is released.",
        away: "fails",
      },
    ],
  },
};

/** Calls that do not change the store, and `write`, which `entries` describes. */
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

/** Descriptions of the calls other than `write` that change the store, and of the writes that a durable recorder makes by itself. */
export const calls: Readonly<
  Record<Exclude<keyof RunRecorder["Service"], Others> | "open" | "heartbeat" | "retention" | "close", Write>
> = {
  claim: {
    holds: "This process's lease, as the owner of one run.",
    occasions: [
      { when: "`takeUp` or `recover` takes a run over.", before: "Its pending work is read and done.", away: "fails" },
    ],
  },
  release: {
    holds: "The run without an owner.",
    occasions: [{ when: "A claimed run cannot continue here.", before: "Another process may claim it.", away: "kept" }],
  },
  orphans: {
    holds: "A fence for every expired lease: its process can no longer write its runs.",
    occasions: [{ when: "`recover` looks for runs that no process owns.", before: "They are found.", away: "fails" }],
  },
  processEnded: {
    holds: "A fence for every lease of a process that has ended.",
    occasions: [
      {
        when: "A supervisor notifies a worker that a sibling died.",
        before: "Its runs are recovered without a wait for the end of its lease.",
        away: "fails",
      },
    ],
  },
  shared: {
    holds:
      "Facts that other machines need: the spending of a failed request and the response that its client received, under the digest of the request; announced waits; runs whose clients cancel at another gateway.",
    occasions: [
      {
        when: "A gateway's run fails.",
        before: "Its client gets the response. The wait is at most half a second.",
        away: "fails",
      },
      { when: "A provider announces a wait.", before: "Nothing waits for it.", away: "fails" },
      { when: "A client cancels a run that another gateway owns.", before: "It is confirmed.", away: "fails" },
    ],
  },
  pacing: {
    holds:
      "The spending of a group of runs and the retry tokens of a provider, each until it has been unused for an hour.",
    occasions: [
      {
        when: "A run of a group with a limited budget breaks.",
        before: "It is decided. The wait is at most five seconds.",
        away: "fails",
      },
      {
        when: "A response that may be retried breaks.",
        before: "It is decided. The wait is at most half a second.",
        away: "fails",
      },
    ],
  },
  cancels: {
    holds: "The id of a run that a person cancels, for at most an hour. The process that owns the run removes the row.",
    occasions: [
      { when: "A person cancels a run that another process owns.", before: "That process is notified.", away: "fails" },
    ],
  },
  answer: {
    holds: "`QuestionAnswered`, compared and set in one transaction.",
    occasions: [{ when: "An answer arrives at any process.", before: "It is confirmed.", away: "fails" }],
  },
  probe: {
    holds:
      "The existing version of the tables. On a server whose disk was full, also a row as long as a run's, to find out if there is space again; it is rolled back.",
    occasions: [
      {
        when: "A gateway's writes fail: once a second until one succeeds. Also if there was no write for 30 s.",
        before: "Its health is reported.",
        away: "fails",
      },
    ],
  },
  prune: {
    holds: "Nothing. Ended runs are deleted, with their incidents and questions.",
    occasions: [{ when: "`runs prune` is called.", before: "It reports their number.", away: "fails" }],
  },
  open: {
    holds: "Tables, their version, and the key of the digests.",
    occasions: [{ when: "A database without them is opened.", before: "Anything else is written.", away: "fails" }],
  },
  heartbeat: {
    holds:
      "The lease: the number of its renewals, and its end, by the clock of the file's machine or of the database server.",
    occasions: [
      {
        when: "A first write needs a lease; then three times per lease, while runs are owned or watched.",
        before: "A process that watches the lease would otherwise consider it expired.",
        away: "kept",
      },
    ],
  },
  retention: {
    holds: "Nothing. Old runs and leases are deleted.",
    occasions: [
      { when: "At start, and once an hour.", before: "Nothing waits for it.", away: "fails" },
      { when: "`runs retain` is called.", before: "It reports their number.", away: "fails" },
    ],
  },
  close: {
    holds: "A fence for this process's lease.",
    occasions: [
      {
        when: "The recorder's scope closes.",
        before: "The database is closed. Other processes may claim its runs at once.",
        away: "fails",
      },
    ],
  },
};
