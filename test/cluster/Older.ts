/**
 * Makes the program of the version before for a test file, once, and removes it behind the tests.
 */
import { afterAll } from "@effect/vitest";
import * as OlderProgram from "../../scripts/cluster/OlderProgram.ts";

const missing = OlderProgram.missing();

/** In a clone without its history there is no older program, and what is not tested is said. */
export const isPlayed = missing === undefined;

if (!isPlayed) console.log(`programs of the version before are not tested beside this one: ${missing}`);

let made: OlderProgram.OlderProgram | undefined;

/** Fails in words where the history does not have it. */
export const older = (): OlderProgram.OlderProgram => {
  made ??= OlderProgram.make();
  return made;
};

afterAll(() => made?.remove());
