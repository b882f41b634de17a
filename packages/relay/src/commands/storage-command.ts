/** Commands that read or change the relay's database, whether the relay runs or not. */
import { checkSchema, RelayId, type TSchema } from '@posthouse/protocol';
import { Command, InvalidArgumentError } from 'commander';
import type { RelayConfig } from '../config/index.ts';
import { relayMigrations } from '../modules.ts';
import { openAlongside } from '../storage/open.ts';
import type { Storage } from '../storage/types.ts';
import { configFrom, type Flags, withConfig } from './config-flags.ts';

/** Gives a command the flags of the configuration; it exits with 2 for wrong arguments. */
export function asksStorage(command: Command): Command {
  return withConfig(command).exitOverride((error) => process.exit(error.exitCode === 0 ? 0 : 2));
}

/** Creates a verb of such a command; its help ends in an example. */
export function subcommand(name: string, description: string): Command {
  const command = asksStorage(new Command(name).description(description));
  return command.addHelpText('afterAll', () => `\nExample:\n  ${exampleOf(command)}`);
}

/** Values of arguments and flags in examples. */
const sampleValues: Readonly<Record<string, string>> = {
  account: 'neo:860833102:NX8GreRFGFK5wpGMWetpX93HmtrezGogzk',
  address: '2001:db8::/48',
  channel: 'chan_yTq2FwYp3Vd0m9rLrKq0bA',
  group: 'grp_yTq2FwYp3Vd0m9rLrKq0bA',
  'https-address': 'https://two.example.net/svc/v1',
  invite: '0f3kq7xw',
  kind: 'account',
  relay: `0x${'2f'.repeat(20)}`,
  sequence: '12',
  to: 'account.jsonl',
};

/** Returns a command line with which the verb can be run. */
function exampleOf(command: Command): string {
  const noun = command.parent?.name() ?? '';
  const sampleOf = (name: string) =>
    sampleValues[name] ?? sampleValues[noun] ?? String(sampleValues.account);
  const values = command.registeredArguments.map(
    (one) => one.argChoices?.[0] ?? sampleOf(one.name()),
  );
  const flags = command.options
    .filter(({ mandatory }) => mandatory)
    .map((one) => `${one.long} ${sampleOf(one.attributeName())}`);
  return ['posthouse', noun, command.name(), ...values, ...flags, '--config relay.json'].join(' ');
}

/** Returns an argument if it is valid; otherwise commander reports what was expected. */
export function argument<T>(schema: TSchema, value: T | string, expected: string): T {
  try {
    checkSchema(schema, value);
  } catch {
    throw new InvalidArgumentError(`Expected ${expected}.`);
  }
  return value as T;
}

/** Parses the argument `<relay>`. */
export const relayOf = (text: string) =>
  argument<string>(RelayId, text, '0x and 40 hexadecimal digits in lower case');

/** Returns the configuration for a command on storage, and the flags of it and of its parents. */
export function configAndFlags<T>(of: Command): { readonly config: RelayConfig; readonly own: T } {
  const flags = of.optsWithGlobals();
  return { config: configFrom(flags as Flags, 'storage').config, own: flags as T };
}

/** Runs `work` on the database, whether the relay runs or not. */
export async function withStorage<T>(
  config: RelayConfig,
  work: (storage: Storage) => Promise<T>,
): Promise<T> {
  await using storage = await openAlongside(config, relayMigrations);
  return await work(storage);
}
