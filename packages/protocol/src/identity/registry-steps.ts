import { badRequest } from '../errors.ts';
import { checkSchema, Type } from '../schema.ts';
import type { Network } from './network.ts';
import {
  addRecord,
  type Registry,
  type RelayEntry,
  registryOf,
  StaticRegistryFile,
} from './registry.ts';

/** The file without its records, which are checked one by one. */
const FileOfRecords = Type.Object({
  context: StaticRegistryFile.properties.context,
  relays: Type.Array(Type.Unsafe<unknown>({})),
});

/**
 * Makes a registry as `staticRegistry` does, in steps: after each, the caller may do other work. For
 * files with thousands of relays, on an event loop that has other callers.
 *
 * @throws ProtocolError `bad_request` as `staticRegistry`, at the step that meets the fault
 * @example
 * const steps = staticRegistryInSteps(network, parseJson(text));
 * let step = steps.next();
 * while (step.done !== true) step = steps.next();
 * const entry = await step.value.getRelay(relayId);
 */
export function* staticRegistryInSteps(
  network: Network,
  parsedJson: unknown,
): Generator<undefined, Registry, undefined> {
  checkSchema(FileOfRecords, parsedJson);
  const { context, relays } = parsedJson;
  if (context !== network.context) throw badRequest('context', 'is of another network');
  const entries = new Map<string, RelayEntry>();
  for (const [index, entry] of relays.entries()) {
    addRecord(entries, entry, index);
    yield;
  }
  return registryOf(entries);
}
