import { utf8Length } from '../encoding/bytes.ts';
import { rpcErrors } from '../errors.ts';
import { limits } from '../limits.ts';
import { parseJsonInSteps, stepLength } from './parse.ts';
import { rootMembersInSteps } from './scan.ts';
import { isJsonObject, type JsonObject } from './types.ts';

/** How to answer a JSON-RPC text that the strict parser refused. */
export interface EnvelopeFault {
  /** -32700 Parse Error, -32600 Invalid Request or -32602 Invalid Params. */
  readonly rpc: -32700 | -32600 | -32602;
  /** The `id` to answer with; `null` if no valid one can be read. */
  readonly id: string | number | null;
}

/**
 * Returns whether a value may be the `id` of a JSON-RPC request (chapter 02, section 3.4).
 *
 * @example
 * isRpcId(1.5); // false
 */
export function isRpcId(value: unknown): value is string | number {
  if (typeof value === 'string') return utf8Length(value) <= limits.rpcIdBytes;
  return Number.isSafeInteger(value);
}

/**
 * Decides how to answer a text from a client WebSocket or a relay RPC stream that `parseJson`
 * refused (chapter 01, section 19, last row; chapter 02, section 18):
 * - -32700 if the text is not one RFC 8259 value in well-formed Unicode;
 * - -32602 if the envelope is a request and every fault lies inside `params`;
 * - -32600 for everything else: a fault of the envelope weighs more than one of its `params`.
 *
 * Only the code and the `id` come out: the text is scanned without recursion, then its `id` and all
 * members but `params` are read strictly, so that no value of a faulty text ever reaches a caller.
 *
 * @example
 * diagnoseEnvelope('{"jsonrpc":"2.0","id":7,"method":"m","params":{"a":1.0}}');
 * // { rpc: -32602, id: 7 }
 */
export function diagnoseEnvelope(text: string): EnvelopeFault {
  const steps = diagnoseEnvelopeInSteps(text);
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
  }
}

/**
 * Decides as {@link diagnoseEnvelope} does, in steps: after each, the caller may do other work.
 *
 * @example
 * const steps = diagnoseEnvelopeInSteps('{"jsonrpc":"2.0","id":7,"method":"m","params":1.5}');
 * let step = steps.next();
 * while (step.done !== true) step = steps.next();
 * console.log(step.value.rpc); // -32602
 */
export function* diagnoseEnvelopeInSteps(
  text: string,
  length: number = stepLength,
): Generator<undefined, EnvelopeFault, undefined> {
  const parseError = { rpc: rpcErrors.parse_error, id: null };
  if (!text.isWellFormed()) return parseError;
  const members = yield* rootMembersInSteps(text, { names: ['id', 'params'], length });
  if (members === undefined) return parseError;
  const [id, secondId] = members.filter(({ name }) => name === 'id');
  const [params, secondParams] = members.filter(({ name }) => name === 'params');
  const source = id === undefined ? '' : text.slice(id.start, id.end);
  const read = secondId === undefined ? yield* strictObject(`{${source}}`, length) : undefined;
  if (!isRpcId(read?.id)) return { rpc: rpcErrors.invalid_request, id: null };
  if (secondParams !== undefined) return { rpc: rpcErrors.invalid_request, id: read.id };
  // The faults of params do not matter, those of all other members do.
  const others =
    params === undefined
      ? text
      : `${text.slice(0, params.start)}"params":0${text.slice(params.end)}`;
  const envelope = yield* strictObject(others, length);
  const isRequest = envelope?.jsonrpc === '2.0' && typeof envelope.method === 'string';
  return { rpc: isRequest ? -32602 : rpcErrors.invalid_request, id: read.id };
}

/** Returns the object that a text is, if it is one under all rules. */
function* strictObject(
  text: string,
  length: number,
): Generator<undefined, JsonObject | undefined, undefined> {
  try {
    const value = yield* parseJsonInSteps(text, { length });
    return isJsonObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
