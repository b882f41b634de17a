/**
 * The catalogue of errors (chapter 02, section 4.1) and the one class that carries them.
 *
 * Across packages and transports compare `code`, never `instanceof` and never `message`.
 */

interface ErrorEntry {
  /** JSON-RPC code, on WebSocket and relay RPC. */
  readonly rpc: number;
  /** HTTP status. */
  readonly http: number;
  /** What a caller may conclude about trying again (chapter 02, section 4.3). */
  readonly category: 'permanent' | 'temporary' | 'conditional' | 'routing';
}

/** Every business error of the protocol, by its string code. */
export const errorCatalogue = {
  bad_request: { rpc: -32602, http: 400, category: 'permanent' },
  method_not_found: { rpc: -32601, http: 400, category: 'permanent' },
  internal_error: { rpc: -32603, http: 503, category: 'temporary' },
  unauthorized: { rpc: -32001, http: 401, category: 'permanent' },
  forbidden: { rpc: -32003, http: 403, category: 'permanent' },
  invalid_signature: { rpc: -32004, http: 400, category: 'permanent' },
  device_unknown: { rpc: -32005, http: 400, category: 'conditional' },
  clock_skew: { rpc: -32006, http: 400, category: 'conditional' },
  not_found: { rpc: -32010, http: 404, category: 'conditional' },
  state_conflict: { rpc: -32011, http: 409, category: 'permanent' },
  stale_state: { rpc: -32012, http: 400, category: 'conditional' },
  invalid_state: { rpc: -32013, http: 400, category: 'conditional' },
  message_expired: { rpc: -32014, http: 400, category: 'permanent' },
  request_too_large: { rpc: -32015, http: 413, category: 'permanent' },
  target_not_local: { rpc: -32020, http: 400, category: 'routing' },
  route_stale: { rpc: -32021, http: 400, category: 'routing' },
  route_not_found: { rpc: -32022, http: 404, category: 'routing' },
  bad_gateway: { rpc: -32023, http: 503, category: 'temporary' },
  rate_limited: { rpc: -32030, http: 429, category: 'temporary' },
  temporarily_unavailable: { rpc: -32031, http: 503, category: 'temporary' },
} as const satisfies Record<string, ErrorEntry>;

/** A string code of {@link errorCatalogue}. */
export type ErrorCode = keyof typeof errorCatalogue;

/** JSON-RPC level errors that have no business equivalent (chapter 02, section 4.2). */
export const rpcErrors = { parse_error: -32700, invalid_request: -32600 } as const;

/**
 * Returns the string code of a JSON-RPC code, or `undefined` for a code the catalogue does not
 * have.
 *
 * @example
 * errorCodeOfRpc(-32003); // 'forbidden'
 */
export function errorCodeOfRpc(rpc: number): ErrorCode | undefined {
  for (const [code, entry] of Object.entries(errorCatalogue)) {
    if (entry.rpc === rpc) return code as ErrorCode;
  }
  return undefined;
}

/**
 * Returns whether a text is a string code of the catalogue.
 *
 * @example
 * isErrorCode('forbidden'); // true
 */
export function isErrorCode(text: string): text is ErrorCode {
  return Object.hasOwn(errorCatalogue, text);
}

export interface ProtocolErrorOptions {
  /** Machine-readable details, only if a rule of the protocol defines them. */
  readonly data?: Record<string, unknown>;
  readonly cause?: unknown;
}

/**
 * A failure with a code of the catalogue. `message` is for logs and diagnosis only; it never
 * carries secrets and never more of the input than a member's path.
 *
 * @example
 * const error = new ProtocolError('bad_request', 'envelope.payload.nonce: expected 12 bytes');
 * error.code; // 'bad_request'
 */
export class ProtocolError extends Error {
  override readonly name = 'ProtocolError';
  readonly code: ErrorCode;
  readonly data: Record<string, unknown> | undefined;

  constructor(code: ErrorCode, message: string, options: ProtocolErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.data = options.data;
  }
}

/** How many characters of a path a message shows. */
const shownPath = 200;

/**
 * Makes the most frequent error, `bad_request` at a member, with the member's path. A long path is
 * cut, because a sender can make names of unknown members as long as it likes.
 *
 * @example
 * throw badRequest('envelope.to', 'expected an account');
 */
export function badRequest(path: string, expected: string): ProtocolError {
  if (path === '') return new ProtocolError('bad_request', expected);
  // A cut may halve a surrogate pair, which no JSON text of the protocol may hold (01 J2).
  const shown = path.length > shownPath ? `${path.slice(0, shownPath).toWellFormed()}…` : path;
  return new ProtocolError('bad_request', `${shown}: ${expected}`);
}
