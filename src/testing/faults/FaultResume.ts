/**
 * Remembers the answers that a later request may resume, and reads the cursors of such requests.
 */

import type { Answer } from "../script/FaultScript.ts";
import type { Resumed } from "./Plan.ts";
import type { RequestHead } from "./RequestReader.ts";

/** Most answers that are remembered; the oldest are dropped. */
export const answersMax = 10_000;

/** What a fault server asks of it. */
export interface FaultResume {
  readonly answered: (script: string, request: number, answer: Answer) => void;
  readonly resumed: (head: RequestHead, script: string) => Resumed | undefined;
}

interface Given {
  readonly script: string;
  readonly request: number;
  readonly answer: Answer;
}

/**
 * Makes an empty memory.
 *
 * A request to `…/responses/resp_rN` resumes request N's answer behind `starting_after`; any other the last answer of its
 * conversation behind `Last-Event-ID`. Without a cursor the whole answer is meant.
 */
export const make = (): FaultResume => {
  const given: Array<Given> = [];
  return {
    answered: (script, request, answer) => {
      given.push({ script, request, answer });
      if (given.length > answersMax) given.shift();
    },
    resumed: (head, script) => {
      const { pathname, searchParams } = new URL(head.target, "http://fault");
      const response = /\/responses\/resp_r(\d+)$/.exec(pathname)?.[1];
      const found = given.findLast((it) =>
        response === undefined ? it.script === script : it.request === Number(response),
      );
      const after = searchParams.get("starting_after") ?? head.headers.get("last-event-id") ?? "-1";
      return found === undefined || !/^-?\d+$/.test(after)
        ? undefined
        : { answer: found.answer, request: found.request, after: Number(after) };
    },
  };
};
