/**
 * The operations that the vectors ask for, by name, on our implementation. The maker stores their
 * results, the tests compare; `vectors/README.md` describes each.
 */
import { hex, type Network, ProtocolError, utf8 } from '../../src/index.ts';
import type { JsonObject } from '../../src/json/index.ts';
import type { Operation } from './operation.ts';
import { crypto, encoding, network } from './operations-core.ts';
import { federation } from './operations-federation.ts';
import { contacts, identity } from './operations-identity.ts';
import { hosted, messages } from './operations-messages.ts';
import { relayRpc } from './operations-relay-rpc.ts';

/** Every operation by its name. */
export const operations: Readonly<Record<string, Operation>> = {
  ...encoding,
  ...crypto,
  ...network,
  ...identity,
  ...contacts,
  ...messages,
  ...hosted,
  ...federation,
  ...relayRpc,
};

/**
 * Runs an operation: what it gives, or `{ error }` with the code of the error catalogue. Texts that
 * are not JSON are `bad_request`, as over HTTP; addresses that are none are `invalid`.
 *
 * @throws Error for an operation that does not exist
 */
export function run(name: string, net: Network, given: JsonObject): JsonObject {
  const found = Object.hasOwn(operations, name) ? operations[name] : undefined;
  if (found === undefined) throw new Error(`there is no operation ${name}`);
  try {
    // The outcome as JSON has it: without members that are undefined.
    return JSON.parse(JSON.stringify(found(net, given))) as JsonObject;
  } catch (error) {
    if (error instanceof ProtocolError) return { error: error.code };
    if (error instanceof Error && error.name === 'JsonError') return { error: 'bad_request' };
    if (error instanceof TypeError && name === 'origin.derive') return { error: 'invalid' };
    throw error;
  }
}

/** UTF-8 of a text in hex, for inputs that are bytes. */
export function hexOf(text: string): string {
  return hex(utf8(text));
}
