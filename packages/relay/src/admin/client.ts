/** Asks the running relay through its admin interface, for commands. */
import { randomBytes } from 'node:crypto';
import { type IncomingMessage, request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';
import { isErrorCode, ProtocolError } from '@posthouse/protocol';
import { type JsonObject, parseJson } from '@posthouse/protocol/json';
import { listenAddress } from '../config/addresses.ts';
import type { RelayConfig } from '../config/index.ts';
import { tlsFiles } from '../tls/configured-files.ts';
import { isSame, loadToken, proofOf } from './token.ts';

/** Milliseconds for an answer to the first question, and to a verb: more than the relay takes. */
const timeouts = { proof: 5_000, verb: 40_000 } as const;
/** Bytes of an answer: a page of a list. */
const maxAnswer = 16_777_216;

/** A relay that has proved to be the one of the configuration. */
interface RunningRelay {
  /**
   * Runs a verb there.
   * @throws ProtocolError what the relay refuses with; Error if the connection is lost
   */
  call(noun: string, name: string, params: JsonObject): Promise<JsonObject>;
}

/**
 * Finds the running relay of a configuration; `undefined` if it has no admin interface, or none
 * answers that knows the token.
 *
 * @throws Error if the token cannot be read
 */
export async function findRunningRelay(config: RelayConfig): Promise<RunningRelay | undefined> {
  const { listen, adminTokenFile } = config.operations;
  if (listen === '' || adminTokenFile === '') return undefined;
  const token = await loadToken(adminTokenFile);
  const challenge = randomBytes(32).toString('hex');
  const connection = await connectionTo(config);
  const path = `/admin/v1/proof?challenge=${challenge}`;
  const found = await ask({ ...connection, path, method: 'GET' }, timeouts.proof).catch(
    () => undefined,
  );
  const { proof } = found?.value ?? {};
  if (typeof proof !== 'string' || !isSame(proof, proofOf(challenge, token))) return undefined;
  return {
    async call(noun, name, params) {
      const headers = {
        authorization: `Bearer ${token}`,
        'content-type': 'application/json',
      };
      const asked = { ...connection, path: `/admin/v1/${noun}/${name}`, method: 'POST', headers };
      const { status, value } = await ask(asked, timeouts.verb, JSON.stringify(params));
      if (status === 200) return value;
      const { code, message } = value;
      const isKnown = typeof code === 'string' && isErrorCode(code);
      throw new ProtocolError(isKnown ? code : 'internal_error', String(message));
    },
  };
}

interface Connection {
  readonly host: string;
  readonly port: number;
  /** Certificate that the relay must have, PEM; absent without TLS. */
  readonly certificate: string | undefined;
}

async function connectionTo(config: RelayConfig): Promise<Connection> {
  const { host, port } = listenAddress(config.operations);
  const reachable = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host;
  const certificate = config.operations.tls ? (await tlsFiles(config)).cert : undefined;
  return { host: reachable, port, certificate };
}

interface Asked extends Connection {
  readonly path: string;
  readonly method: string;
  readonly headers?: Readonly<Record<string, string>>;
}

async function ask(
  { certificate, ...asked }: Asked,
  timeout: number,
  body = '',
): Promise<{ readonly status: number; readonly value: JsonObject }> {
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  const signal = AbortSignal.timeout(timeout);
  const options = { ...asked, signal, agent: false };
  const request =
    certificate === undefined
      ? requestHttp(options, resolve)
      : requestHttps(
          {
            ...options,
            // The relay's own certificate, whatever names it has.
            ca: certificate,
            allowPartialTrustChain: true,
            checkServerIdentity: () => undefined,
          },
          resolve,
        );
  request.once('error', reject);
  request.end(body);
  const response = await promise;
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of response as AsyncIterable<Buffer>) {
    length += chunk.length;
    if (length > maxAnswer) throw new Error('the answer of the relay is too large');
    chunks.push(chunk);
  }
  const value = parseJson(Buffer.concat(chunks).toString());
  return { status: response.statusCode ?? 0, value: value as JsonObject };
}
