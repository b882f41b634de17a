/** Sends calls, right or wrong, over both transports and reads what comes back. */
import {
  errorCatalogue,
  errorCodeOfRpc,
  type MethodDefinition,
  type MethodName,
  methodPath,
  methods,
} from '@posthouse/protocol';
import type { HttpClient } from '../support/http.ts';
import type { Chance } from './chance.ts';
import type { Caller } from './world.ts';

/** A code of the catalogue, or `ok`. */
type Code = string;

/**
 * Calls over HTTP with a verb of the method, and checks the form of the answer (02 §2.6, §4).
 * @returns the code
 * @throws Error if the answer is none of the protocol
 */
export async function callOverHttp(
  client: HttpClient,
  { token }: Caller,
  {
    name,
    body,
    chance,
  }: { readonly name: MethodName; readonly body: string; readonly chance: Chance },
): Promise<Code> {
  const { http }: MethodDefinition = methods[name];
  const verb = chance.once(40)
    ? chance.pick(['GET', 'POST', 'PUT', 'PATCH', 'DELETE'])
    : chance.pick([...http, ...(http.length === 0 ? ['POST'] : [])]);
  const session = token === undefined ? {} : { 'x-svc-session': token };
  const isQuery = verb === 'GET' && !chance.once(20);
  const path = methodPath(name) + (isQuery ? `?${queryOf(body)}` : '');
  const headers = {
    'content-type': 'application/json',
    'content-length': String(Buffer.byteLength(isQuery ? '' : body)),
    ...session,
  };
  const answer = await client.send({ verb, path, headers, ...(!isQuery && { body }) });
  return codeOfHttp(answer.status, answer.text);
}

/** The query of a parameter object; what a query cannot express is written as JSON. */
function queryOf(body: string): string {
  const params: unknown = JSON.parse(body);
  if (typeof params !== 'object' || params === null) return encodeURIComponent(body);
  return Object.entries(params)
    .flatMap(([name, value]) =>
      (Array.isArray(value) ? value.slice(0, 50) : [value]).map((one) => [name, one]),
    )
    .map(([name, value]) => [name, typeof value === 'string' ? value : JSON.stringify(value)])
    .map((pair) =>
      pair.map((text) => encodeURIComponent(String(text).toWellFormed().slice(0, 3_000))).join('='),
    )
    .slice(0, 50)
    .join('&');
}

function codeOfHttp(status: number, text: string): Code {
  if (status === 204 || status === 200) {
    if ((status === 204) !== (text === '')) throw new Error(`status ${status}: ${text}`);
    if (text !== '') JSON.parse(text);
    return 'ok';
  }
  const error = JSON.parse(text) as { readonly code: keyof typeof errorCatalogue };
  const { http } = errorCatalogue[error.code];
  if (http !== status) throw new Error(`status ${status} for ${text}`);
  return error.code;
}

/**
 * Calls over WebSocket, and checks the form of the answer (02 §3.5, §3.6).
 * @returns the code
 * @throws Error if the answer is none of the protocol, or the connection closed
 */
export async function callOverSocket(
  { socket }: Caller,
  { name, body, id }: { readonly name: string; readonly body: string; readonly id: number },
): Promise<Code> {
  socket.socket.send(`{"jsonrpc":"2.0","id":${id},"method":"${name}","params":${body}}`);
  const answer = await socket.answer(id);
  const members = Object.keys(answer).sort().join();
  if (answer.error === undefined) {
    if (members !== 'id,jsonrpc,result') throw new Error(`answer with ${members}`);
    return 'ok';
  }
  const code = errorCodeOfRpc(answer.error.code);
  if (members !== 'error,id,jsonrpc' || code === undefined) {
    throw new Error(`answer with ${members}: ${answer.error.code}`);
  }
  return code;
}
