/**
 * Signs requests to Amazon's APIs with the upstream's own credential (Signature Version 4). Each request is signed as it is sent, because a
 * signature is valid for five minutes only.
 */
import aws4 from "aws4";
import { Redacted } from "effect";
import { fieldOf, type RelayHeaders } from "../../adapters/relay/RelayTransport.ts";
import { type AwsCredential, regionOf, type UpstreamSettings } from "../config/UpstreamSettings.ts";
import type { PassedRequest, Upstream } from "./Upstream.ts";

/** Maximum size of a signed body, in bytes, if the request is not a run. Signing needs the whole body in memory. */
export const signedBytesMax = 64 * 1024 * 1024;

/** Returns an upstream that signs its requests, if the server has a credential of Amazon's. */
export const withSigning = (
  upstream: Upstream,
  { aws, url }: Pick<UpstreamSettings, "aws" | "url">,
  nowMs: () => number,
): Upstream => {
  if (aws === undefined) return upstream;
  const region = aws.region ?? regionOf(url) ?? "us-east-1";
  const signRequest = <R extends Signable>(request: R, body: string | Uint8Array | undefined): R => ({
    ...request,
    headers: [...request.headers, ...signatureHeaders(request, body, { ...aws, region }, nowMs())],
  });
  return {
    ...upstream,
    transport: { open: (request, reporters) => upstream.transport.open(signRequest(request, request.body), reporters) },
    pass: async (request, signal) => {
      const body = await readWhole(request.body);
      return upstream.pass({ ...signRequest(request, body), body, length: undefined }, signal);
    },
  };
};

type Signable = Pick<PassedRequest, "method" | "url" | "headers">;

/** Returns the headers that sign a request. */
export const signatureHeaders = (
  { headers, method, url }: Signable,
  body: string | Uint8Array | undefined,
  { accessKeyId, region, secretAccessKey, sessionToken }: AwsCredential & { readonly region: string },
  nowMs: number,
): RelayHeaders => {
  const { host, pathname, search } = new URL(url);
  const unnamed: RelayHeaders = fieldOf(headers, "content-type") === undefined ? [["content-type", json]] : [];
  const given = {
    ...{ host, "content-type": fieldOf(headers, "content-type") ?? json },
    "x-amz-date": new Date(nowMs).toISOString().replaceAll(/[:-]|\.\d{3}/g, ""),
    ...(sessionToken === undefined ? {} : { "x-amz-security-token": Redacted.value(sessionToken) }),
  };
  const request = {
    ...{ service, region, method, host, path: `${pathname}${search}`, headers: given },
    ...(body === undefined ? {} : { body: typeof body === "string" ? body : Buffer.from(body) }),
  };
  const made = aws4.sign(request, { accessKeyId, secretAccessKey: Redacted.value(secretAccessKey) }).headers;
  const added = ["x-amz-date", "x-amz-security-token", "Authorization"].flatMap((name) =>
    made?.[name] === undefined ? [] : [[name, String(made[name])] as const],
  );
  return [...unnamed, ...added];
};

/** Default content type. The signature covers it, so it must be sent. */
const json = "application/json";

/** Name of the service in the scope of a signature. The host contains another name. */
const service = "bedrock";

const readWhole = async (body: PassedRequest["body"]): Promise<Uint8Array | undefined> => {
  if (body === undefined || body instanceof Uint8Array) return body;
  const chunks: Array<Uint8Array> = [];
  let size = 0;
  for await (const chunk of body) {
    size += chunk.byteLength;
    if (size > signedBytesMax) throw new Error(`body: expected at most ${signedBytesMax} bytes to sign`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
};
