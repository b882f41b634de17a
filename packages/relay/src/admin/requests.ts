/** Which HTTP requests the admin interface answers, and reading their bodies. */
import { createHash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { badRequest, ProtocolError } from '@posthouse/protocol';
import { decodeUtf8, type JsonObject, parseJson } from '@posthouse/protocol/json';

/** Bytes of a body. */
const maxBodyBytes = 65_536;
/** Nesting of a body: parameters are flat. */
const maxDepth = 8;

/** Names under which this interface may be asked. */
export interface OwnNames {
  readonly scheme: 'http' | 'https';
  /** Host names and addresses, an IPv6 address in brackets. */
  readonly hosts: ReadonlySet<string>;
}

/**
 * Refuses requests that a page of another site causes in the operator's browser: also one whose
 * name was made to lead to this machine (DNS rebinding).
 *
 * @throws ProtocolError `forbidden`
 */
export function requireOwnSite({ headers }: IncomingMessage, { scheme, hosts }: OwnNames): void {
  const { host = '', origin } = headers;
  if (!hosts.has(host.replace(/:[0-9]+$/, '').toLowerCase())) {
    throw new ProtocolError('forbidden', 'Host: not a name of the admin interface');
  }
  const site = headers['sec-fetch-site'];
  const isOther = site !== undefined && site !== 'same-origin' && site !== 'none';
  if (isOther || (origin !== undefined && origin !== `${scheme}://${host}`)) {
    throw new ProtocolError('forbidden', 'Origin: not the page of the admin interface');
  }
}

/**
 * Reads the parameters of a request; none is an empty object.
 *
 * @param digest SHA-256 of the body that was signed, hexadecimal
 * @throws ProtocolError `bad_request`, `request_too_large`, `unauthorized` for another body
 */
export async function readParams(request: IncomingMessage, digest?: string): Promise<JsonObject> {
  // Any page may send other types without asking the relay first.
  const type = (request.headers['content-type'] ?? '').split(';', 1)[0]?.trim().toLowerCase();
  if (type !== 'application/json') {
    throw badRequest('', 'the content type is not application/json');
  }
  const bytes = await readBody(request);
  if (digest !== undefined && createHash('sha256').update(bytes).digest('hex') !== digest) {
    throw new ProtocolError('unauthorized', 'the body is not the one that was signed');
  }
  if (bytes.length === 0) return {};
  const value = parse(bytes);
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) {
    return value as JsonObject;
  }
  throw badRequest('', 'the body is not a JSON object');
}

function parse(bytes: Buffer): unknown {
  try {
    return parseJson(decodeUtf8(bytes), maxDepth);
  } catch (error) {
    throw new ProtocolError('bad_request', 'the body is not valid JSON', { cause: error });
  }
}

async function readBody(request: IncomingMessage): Promise<Buffer> {
  const tooLarge = () =>
    new ProtocolError('request_too_large', `the body is over ${maxBodyBytes} bytes`);
  if (Number(request.headers['content-length'] ?? 0) > maxBodyBytes) throw tooLarge();
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of request.iterator({ destroyOnReturn: false })) {
    length += chunk.length;
    if (length > maxBodyBytes) throw tooLarge();
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}
