/** Why a read of the registry on the chain failed, by `code`. Compare codes, not classes. */
export type RegistryErrorCode =
  /** No complete answer: no connection, a status other than 200, too many bytes, too late. */
  | 'unreachable'
  /** The node belongs to another network (07 §A2). */
  | 'wrong_network'
  /** The answer is not what a node answers, or is about another relay. */
  | 'invalid_answer'
  /** The node answered with an error, or the execution did not end in `HALT` (07 §A6). */
  | 'failed_execution'
  /** The node cannot return the whole list: cut off, or without a session. */
  | 'incomplete_list'
  /** The chain has a record that breaks 07 §A3: no node can answer better. */
  | 'invalid_record'
  /** Two nodes have different records of an active relay. */
  | 'nodes_differ';

/**
 * A failed read of the registry. A failed read never means that a relay has no record (07 §A6).
 * `message` has no more of a node's URL than its origin: paths of nodes can contain keys.
 *
 * @example
 * try {
 *   await registry.getRelay(relayId);
 * } catch (error) {
 *   if (!isRegistryError(error, 'nodes_differ')) throw error;
 * }
 */
export class RegistryError extends Error {
  override readonly name = 'RegistryError';
  readonly code: RegistryErrorCode;

  constructor(
    code: RegistryErrorCode,
    message: string,
    options: { readonly cause?: unknown } = {},
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
  }
}

/**
 * Returns whether a value is a {@link RegistryError}, and has the code if one is given.
 *
 * @example
 * isRegistryError(new RegistryError('unreachable', 'no answer'), 'unreachable'); // true
 */
export function isRegistryError(value: unknown, code?: RegistryErrorCode): value is RegistryError {
  return value instanceof RegistryError && (code === undefined || value.code === code);
}
