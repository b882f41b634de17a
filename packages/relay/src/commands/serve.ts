import { Command } from 'commander';
import { Relay } from '../relay.ts';
import { configFrom, type Flags, withConfig } from './config-flags.ts';

/** Makes `posthouse serve`. */
export function serveCommand(): Command {
  return withConfig(new Command('serve')).description('run the relay').action(serve);
}

/** Runs until SIGTERM or SIGINT; the process then ends by itself. */
async function serve(options: Flags): Promise<void> {
  const { config } = configFrom(options);
  const stopping = new AbortController();
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.once(signal, () => stopping.abort());
  }
  const relay = await Relay.start(config, { signal: stopping.signal });
  const { relayId, network } = relay;
  const line = ['ready', relay.https[0], relay.wss[0], relayId, network.context].join(' ');
  process.stdout.write(`${line}\n`);
  await relay.closed;
}
