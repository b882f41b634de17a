/** JSON-RPC 2.0, one message a line: requests that are read, and what is written. */
import { jsonLine } from './output.ts';

/** The codes of the specification, and one for what a command reports. */
export const rpcCodes = {
  parse: -32_700,
  invalidRequest: -32_600,
  unknownMethod: -32_601,
  invalidParams: -32_602,
  internal: -32_603,
  /** A command failed; `data` has its code. */
  failed: -32_000,
} as const;

type RpcId = string | number | null;

export interface RpcRequest {
  /** Absent in a notification, which has no answer. */
  readonly id?: RpcId;
  readonly method: string;
  /** By position or by name. */
  readonly params: readonly unknown[] | Readonly<Record<string, unknown>>;
}

/** An error that is answered to a request. */
export class RpcError extends Error {
  readonly code: number;
  readonly data: object | undefined;
  /** Of the request, if it could be read. */
  readonly id: RpcId;

  constructor(
    name: keyof typeof rpcCodes,
    message: string,
    { data, id = null }: { readonly data?: object; readonly id?: RpcId } = {},
  ) {
    super(message);
    this.code = rpcCodes[name];
    this.data = data;
    this.id = id;
  }
}

/**
 * Reads a line as a request; `undefined` stands for a line that was too long.
 * @throws RpcError
 */
export function parseRequest(line: string | undefined): RpcRequest {
  if (line === undefined) throw new RpcError('parse', 'the line is too long');
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch {
    throw new RpcError('parse', 'the line is not JSON');
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new RpcError('invalidRequest', 'expected one request as an object');
  }
  const { jsonrpc, id, method, params = {} } = value as Record<string, unknown>;
  if (id !== undefined && id !== null && typeof id !== 'string' && typeof id !== 'number') {
    throw new RpcError('invalidRequest', 'id: expected a string or a number');
  }
  const known = id === undefined ? {} : { id };
  if (jsonrpc !== '2.0') throw new RpcError('invalidRequest', 'jsonrpc: expected "2.0"', known);
  if (typeof method !== 'string') {
    throw new RpcError('invalidRequest', 'method: expected a string', known);
  }
  if (typeof params !== 'object' || params === null) {
    throw new RpcError('invalidRequest', 'params: expected an array or an object', known);
  }
  return { ...known, method, params: params as RpcRequest['params'] };
}

export function resultLine(id: RpcId, result: unknown): string {
  return `${jsonLine({ jsonrpc: '2.0', id, result })}\n`;
}

export function errorLine(id: RpcId, { code, message, data }: RpcError): string {
  return `${jsonLine({ jsonrpc: '2.0', id, error: { code, message, data } })}\n`;
}

export function notificationLine(method: string, params: object): string {
  return `${jsonLine({ jsonrpc: '2.0', method, params })}\n`;
}
