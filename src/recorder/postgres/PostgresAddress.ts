/**
 * Parses the address of a PostgreSQL database: `postgres://ROLE@HOST:PORT/DATABASE?sslmode=verify-full`.
 *
 * An address must not contain a password, because it appears in process lists, in logs and on pages that anyone can read.
 */
import { isIP } from "node:net";
import { RecorderError } from "../RecorderError.ts";

/** TLS mode of a connection, as in libpq, without the modes that fall back to plain text. */
export type TlsMode = "disable" | "require" | "verify-ca" | "verify-full";

/** The parts of an address. Host, port and TLS mode have defaults. */
export interface PostgresAddress {
  /** Name, IP address, or folder of a Unix socket. */
  readonly host: string;
  readonly port: number;
  readonly role: string | undefined;
  readonly database: string | undefined;
  readonly tls: TlsMode;
  /** File with the trusted root certificates; Node's own if undefined. */
  readonly rootCertificate: string | undefined;
  /** Files with the role's client certificate and its key. */
  readonly certificate: string | undefined;
  readonly key: string | undefined;
  /** Prefix of the table names. */
  readonly prefix: string | undefined;
  /** Schema of the tables; the role's search path decides if undefined. */
  readonly schema: string | undefined;
  /** True to use named prepared statements. A pooler that switches connections between transactions may not keep them. */
  readonly prepares: boolean;
}

const portDefault = 5432;

const tlsModes: ReadonlyArray<string> = [
  "disable",
  "require",
  "verify-ca",
  "verify-full",
] satisfies ReadonlyArray<TlsMode>;

/** Allowed query parameters. Any other parameter is refused, because a misspelt `sslmode` would leave a connection unprotected. */
const parameters = [
  "host",
  "port",
  "prefix",
  "prepare",
  "schema",
  "sslcert",
  "sslkey",
  "sslmode",
  "sslrootcert",
  "user",
] as const;

/** True if the name of a store is a PostgreSQL address. */
export const isAddress = (name: string): boolean => /^postgres(?:ql)?:/i.test(name);

/**
 * Parses an address.
 *
 * @returns the address, or an error that quotes no part of the address, because it may contain a password
 */
export const parse = (address: string): PostgresAddress | RecorderError => {
  const url = URL.parse(address);
  if (url === null || !/^postgres(?:ql)?:\/\//i.test(address) || isCutWrongly(url)) {
    return addressError("expected postgres://ROLE@HOST:PORT/DATABASE");
  }
  if (url.password !== "" || url.searchParams.has("password")) {
    return addressError(
      "it contains a password, which anyone who can list processes could read. Remove it, and put the password into $PGPASSWORD or into the file that $PGPASSWORD_FILE names",
    );
  }
  const unknown = [...url.searchParams.keys()].find((key) => !parameters.some((known) => known === key));
  if (unknown !== undefined) return addressError(`expected only ${parameters.join(", ")} after the question mark`);
  // If a parameter has several values, libpq uses the last one and other clients use the first.
  const twice = parameters.find((name) => url.searchParams.getAll(name).length > 1);
  if (twice !== undefined) return addressError(`${twice} is given twice`);
  const parameterOf = (name: (typeof parameters)[number]) => url.searchParams.get(name) ?? undefined;
  const [hostname, role, database] = [url.hostname, url.username, url.pathname.slice(1)].map(tryDecode);
  if (hostname === undefined || role === undefined || database === undefined)
    return addressError("a % is not followed by a valid code");
  const host = parameterOf("host") ?? (hostname === "" ? "localhost" : hostname.replace(/^\[(.*)\]$/, "$1"));
  if (host === "" || host.includes(",")) return addressError("host: expected one name, IP address or socket folder");
  const port = Number(parameterOf("port") ?? (url.port === "" ? portDefault : url.port));
  if (!Number.isInteger(port) || port < 1 || port > 65_535) return addressError("port: expected 1 to 65535");
  const schema = parameterOf("schema");
  if (schema !== undefined && !/^[a-z_][a-z0-9_]{0,62}$/.test(schema)) {
    return addressError("schema: expected a name of a-z, 0-9 and _");
  }
  const prepare = parameterOf("prepare") ?? "true";
  if (prepare !== "true" && prepare !== "false") return addressError("prepare: expected true or false");
  const tls = parameterOf("sslmode") ?? (isOwnMachine(host) ? "disable" : "verify-full");
  if (!isTlsMode(tls)) {
    return addressError(
      `sslmode: expected ${tlsModes.join(", ")}. A mode that falls back to plain text protects nothing`,
    );
  }
  return {
    host,
    port,
    role: parameterOf("user") ?? (role === "" ? undefined : role),
    database: database === "" ? undefined : database,
    tls,
    rootCertificate: parameterOf("sslrootcert"),
    certificate: parameterOf("sslcert"),
    key: parameterOf("sslkey"),
    prefix: parameterOf("prefix"),
    schema,
    prepares: prepare === "true",
  };
};

/** Formats the address for messages, without its role. */
export const placeOf = ({ database, host, port, role }: PostgresAddress): string =>
  `postgres://${host.startsWith("/") ? encodeURIComponent(host) : isIP(host) === 6 ? `[${host}]` : host}:${port}/${database ?? role ?? ""}`;

/**
 * True if a URL delimiter in a password shifted the port and the database, as in `me:12/34@host`. Port and database would then contain a
 * part of the password and appear in messages.
 */
const isCutWrongly = ({ hash, pathname }: URL): boolean => hash !== "" || pathname.includes("@");

const isTlsMode = (name: string): name is TlsMode => tlsModes.includes(name);

/** Traffic to these addresses stays on this machine. */
const isOwnMachine = (host: string): boolean =>
  host.startsWith("/") || host === "localhost" || host === "::1" || /^127(?:\.\d+){3}$/.test(host);

const tryDecode = (text: string): string | undefined => {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
};

const addressError = (why: string): RecorderError =>
  new RecorderError({ reason: "bad_option", run_id: "", message: `the PostgreSQL address: ${why}` });
