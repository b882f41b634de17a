/** What nodes answer over JSON-RPC, from bytes to the parts that the reader uses (07 §A6). */
import { isJsonObject, type JsonValue } from '../json/types.ts';
import { RegistryError } from './errors.ts';

/** Characters of a session or iterator ID, which are 36. */
const maxId = 128;

/** Characters of a node's own text in an error. */
const maxReason = 200;

const invalid = (reason: string) => new RegistryError('invalid_answer', reason);

/**
 * Takes the result out of a JSON-RPC answer.
 *
 * @throws RegistryError `failed_execution` for an error answer; `invalid_answer`
 */
export function resultOf(answer: JsonValue, id: number): JsonValue {
  if (!isJsonObject(answer) || answer.jsonrpc !== '2.0') throw invalid('it is not JSON-RPC');
  const { error, result } = answer;
  if ((error ?? undefined) !== undefined) {
    const { message } = isJsonObject(error) ? error : {};
    throw new RegistryError('failed_execution', `it answered with an error: ${shown(message)}`);
  }
  if (answer.id !== id) throw invalid('it is the answer to another request');
  if (result === undefined || result === null) throw invalid('it has no result');
  return result;
}

/** What `getversion` says of a node. */
export interface NodeVersion {
  /** Network magic. */
  readonly magic: number;
  /** Most items of an iterator that one call returns, if the node says so. */
  readonly batch: number | undefined;
}

/** Reads the result of `getversion`. @throws RegistryError `invalid_answer` */
export function versionOf(result: JsonValue): NodeVersion {
  const { protocol, rpc } = isJsonObject(result) ? result : {};
  const { network } = isJsonObject(protocol) ? protocol : {};
  if (typeof network !== 'number') throw invalid('it does not name its network');
  const { maxiteratorresultitems: batch } = isJsonObject(rpc) ? rpc : {};
  return { magic: network, batch: typeof batch === 'number' && batch > 0 ? batch : undefined };
}

/** The end of an execution: one stack item, and the session in which an iterator lives. */
export interface Execution {
  readonly item: JsonValue;
  readonly session: string | undefined;
}

/**
 * Reads the result of `invokefunction`.
 *
 * @throws RegistryError `failed_execution` for any state but `HALT`; `invalid_answer`
 */
export function executionOf(result: JsonValue): Execution {
  if (!isJsonObject(result)) throw invalid('an execution is not an object');
  const { state, stack, exception, session } = result;
  if (state !== 'HALT') {
    throw new RegistryError('failed_execution', `the execution failed: ${shown(exception)}`);
  }
  if (!Array.isArray(stack) || stack.length !== 1) throw invalid('the stack has not one item');
  return { item: (stack as JsonValue[])[0] as JsonValue, session: idOf(session) };
}

/** Where the items of an iterator are: in the answer, or to be fetched from a session. */
export type IteratorPlace =
  | { readonly items: readonly JsonValue[] }
  | { readonly session: string; readonly iterator: string };

/**
 * Reads the iterator of an execution.
 *
 * @throws RegistryError `incomplete_list` if the node cannot return all of it; `invalid_answer`
 */
export function iteratorOf({ item, session }: Execution): IteratorPlace {
  if (!isJsonObject(item) || item.type !== 'InteropInterface') throw invalid('it has no iterator');
  const iterator = idOf(item.id);
  if (iterator !== undefined && session !== undefined) return { session, iterator };
  if (Array.isArray(item.iterator)) {
    if (item.truncated === false) return { items: item.iterator };
    throw new RegistryError('incomplete_list', 'it cuts lists off: use a node with sessions');
  }
  throw new RegistryError('incomplete_list', 'it has no sessions: use another node');
}

function idOf(value: JsonValue | undefined): string | undefined {
  return typeof value === 'string' && value !== '' && value.length <= maxId ? value : undefined;
}

/** A node's text is for the log only, and of any length and content. */
function shown(text: JsonValue | undefined): string {
  if (typeof text !== 'string') return 'no reason given';
  return text.slice(0, maxReason).replace(/[\u0000-\u001f\u007f-\u009f]/g, ' ');
}
