/** `posthouse registry list` and `add`: the registry file of a private network. */
import { checkHttpsEndpoint, type Network } from '@posthouse/protocol';
import { terminalJson, terminalLine } from '@posthouse/protocol/terminal';
import { type Command, InvalidArgumentError } from 'commander';
import { systemClock } from '../clock.ts';
import { enterRelay, FileRegistry, registryPath } from '../federation/index.ts';
import { configFrom, type Flags, networkOf } from './config-flags.ts';
import { instant, note, print } from './terminal-output.ts';

/** Parses the argument `<https-address>`. */
export function endpointOf(text: string): string {
  try {
    checkHttpsEndpoint(text);
  } catch (error) {
    throw new InvalidArgumentError(`${(error as Error).message}.`);
  }
  return text;
}

/** Prints each relay in the registry file: its ID, status, time of the last change, address. */
export async function listRelays(of: Command): Promise<void> {
  const { network, path } = registryFile(of);
  const { json } = of.optsWithGlobals<{ readonly json?: boolean }>();
  for await (const entry of new FileRegistry(network, path).listRelays()) {
    if (json) print([terminalJson(entry)]);
    else {
      const { relay_id, status, updated_at, endpoint } = entry;
      const changed = instant(Math.floor(updated_at / 1_000));
      print([`${relay_id}  ${status.padEnd(9)}  ${changed}  ${terminalLine(endpoint)}`]);
    }
  }
}

/** Enters a relay as active, or changes its address. Creates the file if there is none. */
export async function addRelay(
  of: Command,
  { relay, endpoint }: { readonly relay: string; readonly endpoint: string },
): Promise<void> {
  const { network, path } = registryFile(of);
  await enterRelay(network, path, {
    relay_id: relay,
    endpoint,
    status: 'active',
    updated_at: systemClock.now() * 1_000,
  });
  print([`${relay} is active at ${endpoint}`]);
  note(`Copy ${path} to all relays of the network, and give it to clients.`);
}

/** @throws Error if the registry is on a chain */
function registryFile(of: Command): { readonly network: Network; readonly path: string } {
  const { config } = configFrom(of.optsWithGlobals() as Flags, 'keys');
  const { registry, data } = config;
  if (typeof registry !== 'string') {
    throw new Error(
      'the registry of this network is on a chain: use `posthouse registry invocation`, or `posthouse peers` to see its relays',
    );
  }
  return { network: networkOf(config), path: registryPath({ data, registry }) };
}
