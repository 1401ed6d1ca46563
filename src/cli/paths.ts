/**
 * `stream-recovery paths`: prints the provider paths that a running gateway knows and the runs that wait for them.
 */
import { Config, Console, Effect, Option, Redacted, Schema } from "effect";
import { Command, Flag } from "effect/cli";
import { type PathView, PathView as PathViewSchema } from "../gateway/api/PathList.ts";
import { server } from "../gateway/config/Options.ts";
import { tokenHeader } from "../gateway/config/OwnHeaders.ts";
import { failing } from "./command/CommandFailed.ts";
import { jsonFlag } from "./command/Store.ts";
import { cooldownLines, pathTable } from "./paths/PathTable.ts";
import * as Screen from "./terminal/Screen.ts";

const fail = failing("paths");

/** Default address of a gateway. */
const urlDefault = `http://127.0.0.1:${server.port.default}`;

/** Timeout of a gateway's response, in milliseconds. `--try` takes as long as a connection attempt. */
const responseMs = 30_000;

const exitCodes = [
  "",
  "",
  "  Exit codes:",
  "    0  done; with --try, the path is up",
  "    1  no path is known yet, or the probed path is unknown or still down",
  "    2  bad input, or the gateway cannot be reached or refuses",
].join("\n");

/**
 * Prints the paths of a running gateway. With `--try`, it prints one path, which the gateway probes first; the exit code is 0 if that path
 * is up.
 */
export const pathsCommand = Command.make(
  "paths",
  {
    url: Flag.String("url").pipe(
      Flag.withDescription(`Address of the gateway ($STREAM_RECOVERY_URL; default ${urlDefault})`),
      Flag.withFallbackConfig(Config.String("STREAM_RECOVERY_URL")),
      Flag.withDefault(urlDefault),
    ),
    token: Flag.Redacted("token").pipe(
      Flag.withDescription(
        "A token that permits the page. Prefer $STREAM_RECOVERY_TOKEN, which other users of this machine cannot see",
      ),
      Flag.withFallbackConfig(Config.Redacted("STREAM_RECOVERY_TOKEN")),
      Flag.optional,
    ),
    try: Flag.String("try").pipe(
      Flag.withDescription(
        "Path to probe now, spelled as this command prints it; the probe opens a connection and sends no request",
      ),
      Flag.withMetavar("path"),
      Flag.optional,
    ),
    json: jsonFlag,
  },
  Effect.fn("paths")(function* ({ json, token, try: tried, url }) {
    const gateway = yield* gatewayOf(url, token);
    const paths = Option.isSome(tried) ? [yield* tryPath(gateway, tried.value)] : yield* fetchPaths(gateway);
    if (json) yield* Console.log(JSON.stringify({ paths }, null, 2));
    else if (paths.length > 0) {
      const screen = yield* Screen.make();
      yield* Console.log([pathTable(paths, screen), ...cooldownLines(paths, screen)].join("\n"));
    }
    if (paths.length === 0)
      return yield* fail("negative", "no path is known yet: the gateway has sent no request to a provider");
    if (Option.isSome(tried) && paths[0]?.state === "down")
      return yield* fail("negative", `${tried.value} cannot be reached yet; its runs continue to wait`);
  }),
).pipe(
  Command.withDescription(
    `Print the paths to providers that a running gateway knows: which are down or cooling, since when, and how many runs wait.${exitCodes}`,
  ),
  Command.withShortDescription("Print which providers a running gateway can reach, and which runs wait for them"),
  Command.withExamples([
    { command: "stream-recovery paths", description: "Print the paths of the gateway on this machine" },
    {
      command: "stream-recovery paths --try https://api.openai.com",
      description: "Probe a path now; its waiting runs continue if it is up",
    },
  ]),
);

interface GatewayAddress {
  /** The origin, without a trailing slash. */
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
}

const gatewayOf = (url: string, token: Option.Option<Redacted.Redacted<string>>) => {
  const parsed = URL.canParse(url) ? new URL(url) : undefined;
  if (parsed === undefined || !/^https?:$/.test(parsed.protocol) || parsed.username !== "" || parsed.password !== "")
    return fail("refused", "--url: expected the gateway's address, http(s)://host[:port]");
  const secret = Option.getOrElse(Option.map(token, Redacted.value), () => "");
  if (/[^\w.~-]/.test(secret)) return fail("refused", "--token: expected letters, digits and -._~ only");
  const address: GatewayAddress = {
    url: parsed.origin,
    headers: { accept: "application/json", ...(secret === "" ? {} : { [tokenHeader]: secret }) },
  };
  return Effect.succeed(address);
};

const fetchPaths = ({ headers, url }: GatewayAddress) =>
  Effect.flatMap(fetchText(`${url}/recovery/api/paths`, { headers }, url), ({ body, status }) =>
    status === 200
      ? Effect.map(read(body, Schema.Struct({ paths: Schema.Array(PathViewSchema) }), url), ({ paths }) => paths)
      : failOnStatus(status, url),
  );

const tryPath = ({ headers, url }: GatewayAddress, path: string): Effect.Effect<PathView, Failed> =>
  Effect.flatMap(
    fetchText(
      `${url}/recovery/api/paths/try`,
      {
        method: "POST",
        headers: { ...headers, "content-type": "application/json", "x-recovery-answer": "1" },
        body: JSON.stringify({ path }),
      },
      url,
    ),
    ({ body, status }) => {
      if (status === 200) return read(body, PathViewSchema, url);
      if (status === 404 && body.includes("unknown_path"))
        return fail(
          "negative",
          `the gateway does not know the path ${JSON.stringify(path)}; \`paths\` prints the known ones`,
        );
      return failOnStatus(status, url);
    },
  );

type Failed = Effect.Error<ReturnType<typeof fail>>;

interface Fetched {
  readonly status: number;
  readonly body: string;
}

const fetchText = (address: string, init: RequestInit, url: string): Effect.Effect<Fetched, Failed> =>
  Effect.tryPromise({
    try: async (signal): Promise<Fetched> => {
      const limits = AbortSignal.any([signal, AbortSignal.timeout(responseMs)]);
      const response = await fetch(address, { ...init, redirect: "error", signal: limits });
      return { status: response.status, body: await response.text() };
    },
    catch: (error) => new Unanswered(codeOf(error)),
  }).pipe(
    Effect.catch(({ code }) => {
      const why = code === undefined ? "" : ` (${code})`;
      return fail("refused", `no gateway answers at ${url}${why}. Start one with \`serve\`, or name it with --url`);
    }),
  );

/** The request failed without a response. */
class Unanswered {
  readonly code: string | undefined;

  constructor(code: string | undefined) {
    this.code = code;
  }
}

/** Returns the code of a network error. `fetch` wraps the network error in a generic one, so the code is in a cause. */
const codeOf = (error: unknown): string | undefined => {
  for (let it = error; it instanceof Error; it = it.cause)
    if ("code" in it && typeof it.code === "string") return it.code;
  return undefined;
};

const read = <S extends Schema.Top & { readonly DecodingServices: never }>(body: string, schema: S, url: string) =>
  Schema.decodeUnknownEffect(Schema.fromJsonString(schema))(body).pipe(
    Effect.catch(() => fail("refused", `the server at ${url} is not a gateway of this version`)),
  );

const failOnStatus = (status: number, url: string) =>
  fail(
    "refused",
    status === 401 || status === 403
      ? `the gateway at ${url} refuses (${status}): set $STREAM_RECOVERY_TOKEN to a token that permits the page`
      : `the server at ${url} is not a gateway with a page (${status})`,
  );
