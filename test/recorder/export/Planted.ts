/**
 * Texts that must never appear in an export, and functions that plant them and search for them.
 */

/** Secrets and texts as they occur in errors, tool names and finish reasons. */
export const canaries: ReadonlyArray<string> = [
  "sk-proj-4f9aXQ7b2kLmN8pR3tUv",
  "ghp_16C7e42F292c6912E7710c838347Ae178B4a",
  "AKIAIOSFODNN7EXAMPLE",
  "eyJhbGciOiJIUzI1NiJ9.CANARY.sigsig",
  "Bearer CANARY-secret-value",
  "0123456789abcdef0123456789abcdef",
  "9f8b3c1e-42aa-4b7e-9d0c-7a1f5e2b6c3d",
  "4111-1111-1111-1111",
  "555-123-4567",
  "192.168.10.77",
  "host-192-168-10-77",
  "hunter2",
  "canary_token_value",
  "CanaryError",
  "ERR_CANARY",
  "E4815162342",
  "tool_canary",
  "gpt-canary-4",
  "canary/gpt-5",
  "jane.canary@example.com",
  "/home/canary/.ssh/id_rsa",
  "C:\\Users\\canary\\secrets.txt",
  "src/canary.ts",
  "https://host.example/path?key=CANARY",
  "the user's prompt about CANARY\nand more of it",
  '{"prompt":"canary"}',
  "сanary_ünï_漢字",
  "canary".repeat(60),
];

const letters = "bcdfghjklmnpqrstvwxz";
const alphabet = `${letters}${letters.toUpperCase()}0123456789`;

/** A canary from the list, or a random key, passphrase or number. Its letters are consonants, so that it contains no word. */
export const canary = (random: () => number): string => {
  const many = (from: string, length: number): string =>
    Array.from({ length }, () => from[Math.floor(random() * from.length)] ?? "q").join("");
  const roll = random();
  if (roll < 0.5) return canaries[Math.floor(random() * canaries.length)] ?? "hunter2";
  if (roll < 0.6) return many(alphabet, 20 + Math.floor(random() * 200));
  if (roll < 0.7) return `${many(letters, 7)}_${many(letters, 6)}_${many(letters, 8)}`;
  if (roll < 0.8) return `read_file_${many(letters, 7)}`;
  if (roll < 0.9) return `claude-${many(alphabet, 9)}-4-5`;
  return `${many("0123456789", 4)}-${many("0123456789", 4)}-${many("0123456789", 4)}`;
};

/** The pieces of a canary that would reveal it: its beginning, and every run of six or more letters and digits. */
const pieces = (planted: string): ReadonlyArray<string> => [
  planted.slice(0, 24),
  ...(planted.match(/[\p{L}\p{N}]{6,}/gu) ?? []),
  ...planted.split(/[\\/]/).filter((piece) => piece.length >= 6),
];

/** Words that canaries share with every export. */
const ordinary: ReadonlySet<string> = new Set(["prompt", "secret", "claude", "example"]);

/**
 * Finds the planted texts that a text contains, in any case.
 *
 * @param text an export, a record or a log, as JSON
 */
export const found = (text: string, planted: Iterable<string>): ReadonlyArray<string> => {
  const said = text.toLowerCase();
  const escaped = (piece: string): string => JSON.stringify(piece).slice(1, -1);
  return [...planted].filter((one) =>
    pieces(one)
      .map((piece) => piece.toLowerCase())
      .some((piece) => !ordinary.has(piece) && (said.includes(piece) || said.includes(escaped(piece)))),
  );
};

export type Path = ReadonlyArray<string | number>;

/** The path of every leaf in a JSON value that contains one of the planted texts. */
export const pathsTo = (value: unknown, planted: Iterable<string>): ReadonlyArray<Path> => {
  const all = [...planted];
  return leaves(value)
    .filter(([, leaf]) => found(JSON.stringify(leaf) ?? "", all).length > 0)
    .map(([path]) => path);
};

/** Every leaf of a value with its path. */
export const leaves = (value: unknown, path: Path = []): ReadonlyArray<readonly [Path, unknown]> => {
  if (typeof value !== "object" || value === null) return [[path, value]];
  return Object.entries(value).flatMap(([key, inner]) =>
    leaves(inner, [...path, Array.isArray(value) ? Number(key) : key]),
  );
};

/** A path without its indices: `incidents.facts.tools.tool`. */
export const named = (path: Path): string => path.filter((step) => typeof step === "string").join(".");

/** A copy of a value in which `change` replaces leaves. */
export const replanted = (value: unknown, change: (path: Path, leaf: unknown) => unknown, path: Path = []): unknown => {
  if (Array.isArray(value)) return value.map((inner, index) => replanted(inner, change, [...path, index]));
  if (typeof value !== "object" || value === null) return change(path, value);
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => [key, replanted(inner, change, [...path, key])]),
  );
};
