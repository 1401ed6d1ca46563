/**
 * Stages: features that only some runs have. An option of the run carries its stage as a value, so a program loads only the stages that
 * it uses.
 */

export * as PlainSeam from "../seam/PlainSeam.ts";
export * as Linger from "./output/Linger.ts";
export * as Routes from "./routes/Routes.ts";
export * as Seam from "./seam/Seam.ts";
