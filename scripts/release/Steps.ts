/**
 * The steps of a release check, and the page that contains each result.
 */
import type { Comparison } from "./Figures.ts";

/** A step of the release check. */
export interface Step {
  readonly name: string;
  /** Usual duration on two quiet cores, in minutes. */
  readonly minutes: number;
  readonly args: ReadonlyArray<string>;
  /** Exit codes of a step that passed. A bench exits with 1 if a bar is missed, which its page must show too. */
  readonly passes: ReadonlyArray<number>;
  readonly page?: { readonly path: string; readonly marker: string; readonly compared: Comparison };
}

const bench = "docs/bench.md";

/** Options of `sdk-suites` that take a checkout of an SDK. */
export const suiteOptions = ["openai", "anthropic", "genai", "ai"] as const;

/**
 * The steps in order: the package itself, then correctness, speed last.
 *
 * @param suites the checkouts whose test suites are played, by option; without any, that step is left out
 */
export const stepsOf = (
  suites: Readonly<Partial<Record<(typeof suiteOptions)[number], string>>>,
): ReadonlyArray<Step> => {
  const checkouts = suiteOptions.flatMap((name) => (suites[name] === undefined ? [] : [`--${name}`, suites[name]]));
  return [
    { name: "package", minutes: 1, args: ["scripts/package-check.ts"], passes: [0] },
    {
      name: "matrix",
      minutes: 2,
      args: ["scripts/matrix.ts", "--write"],
      passes: [0],
      page: { path: "docs/fault-matrix.md", marker: "<!-- matrix -->", compared: "exact" },
    },
    {
      name: "conformance",
      minutes: 12,
      args: ["scripts/tables.ts", "--measure"],
      passes: [0],
      page: { path: "docs/conformance.md", marker: "<!-- printed: conformance -->", compared: "exact" },
    },
    {
      name: "agents",
      minutes: 12,
      args: ["scripts/agents/index.ts", "--only", "codex,claude-code"],
      passes: [0],
      page: { path: "docs/agents.md", marker: "<!-- agents -->", compared: "rows" },
    },
    { name: "campaigns", minutes: 4, args: ["scripts/campaigns.ts", "--times", "4"], passes: [0] },
    { name: "seam", minutes: 3, args: ["scripts/seam.ts", "--breaks", "10000"], passes: [0] },
    { name: "kill", minutes: 3, args: ["scripts/kill.ts"], passes: [0] },
    { name: "outage", minutes: 5, args: ["scripts/outage/index.ts"], passes: [0] },
    ...(checkouts.length === 0
      ? []
      : [{ name: "sdk-suites", minutes: 15, args: ["scripts/sdk-suites/index.ts", ...checkouts], passes: [0] }]),
    {
      name: "bench",
      minutes: 10,
      args: ["scripts/bench/index.ts", "--processes", "3", "--write"],
      passes: [0, 1],
      page: { path: bench, marker: "<!-- bench -->", compared: "verdicts" },
    },
    {
      name: "bench-gateway",
      minutes: 15,
      args: ["scripts/bench/gateway/index.ts", "--install", "--rounds", "2", "--write"],
      passes: [0, 1],
      page: { path: bench, marker: "<!-- bench-gateway -->", compared: "verdicts" },
    },
    {
      name: "bench-store",
      minutes: 12,
      args: ["scripts/bench/store/index.ts", "--write"],
      passes: [0, 1],
      page: { path: bench, marker: "<!-- bench-store -->", compared: "verdicts" },
    },
  ];
};
