/** Requests as command lines: methods are named as the commands, parameters as in their help. */
import type { Command, Option } from 'commander';
import { RpcError, type RpcRequest } from './rpc-messages.ts';

/** Commands that need a terminal, run on, or handle keys, and what belongs to a folder's set-up. */
const excluded = new Set([
  ...['chat', 'channel.watch', 'completion', 'devices.complete', 'devices.request', 'follow'],
  ...['help', 'key.export', 'serve', 'setup'],
]);

/** Options that choose account and output, which one session has only one of. */
const excludedOptions = new Set([
  ...[
    'ca',
    'data',
    'follow',
    'ids',
    'json',
    'network',
    'registry',
    'registryAgree',
    'registryNode',
  ],
  ...['service', 'version'],
]);

/**
 * Finds the command of a method: `send`, `group.send`; `contacts` is the first verb of `contacts`.
 * @throws RpcError
 */
export function commandOf(root: Command, method: string): { command: Command; words: string[] } {
  const words: string[] = [];
  let command = root;
  for (const word of method.split('.')) {
    const found = command.commands.find((each) => each.name() === word);
    if (found === undefined) throw unknownMethod(method);
    command = found;
    words.push(word);
  }
  const [first] = command.commands;
  if (first !== undefined) {
    command = first;
    words.push(first.name());
  }
  if (excluded.has(words.join('.'))) throw unknownMethod(method);
  return { command, words };
}

const unknownMethod = (method: string) =>
  new RpcError(
    'unknownMethod',
    `no method ${method}: methods are named as the commands, without those that go on or ask`,
  );

/** Returns the command line of a request. @throws RpcError */
export function commandLine(
  { command, words }: { readonly command: Command; readonly words: readonly string[] },
  { params }: Pick<RpcRequest, 'params'>,
): string[] {
  const { flags, values } = Array.isArray(params)
    ? { flags: [], values: params.map((value) => textOf('params', value)) }
    : byName(command, params as Readonly<Record<string, unknown>>);
  return [...words, ...flags, '--json', '--', ...values];
}

function byName(command: Command, params: Readonly<Record<string, unknown>>) {
  const names = command.registeredArguments.map((argument) => argument.name());
  const values: string[] = [];
  let isEnded = false;
  for (const name of names) {
    // An option of the same name removes what the argument would give: `text: false`.
    const given = Object.hasOwn(params, name) && params[name] !== false ? params[name] : undefined;
    if (given === undefined) isEnded = true;
    else if (isEnded) throw invalid(name, 'give the parameters before it, too');
    else values.push(...listOf(given).map((value) => textOf(name, value)));
  }
  const flags = Object.entries(params).flatMap(([name, value]) =>
    names.includes(name) && value !== false ? [] : flagsOf(command, name, value),
  );
  return { flags, values };
}

/** Returns the flags of an option: `true` and `false` of a switch, one value, or several. */
function flagsOf(command: Command, name: string, value: unknown): string[] {
  const options = command.options.filter((option) => option.attributeName() === name);
  if (options.length === 0 || excludedOptions.has(name)) throw invalid(name, 'unknown parameter');
  if (typeof value === 'boolean') {
    const isSwitch = (option: Option) => option.isBoolean() || option.negate;
    if (!options.some(isSwitch)) throw invalid(name, 'expected a value');
    return options.flatMap((option) =>
      option.negate === !value && isSwitch(option) ? [option.long ?? ''] : [],
    );
  }
  const [option] = options.filter((each) => each.required);
  if (option === undefined) throw invalid(name, 'expected true or false');
  return listOf(value).map((each) => `${option.long}=${textOf(name, each)}`);
}

const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [value]);

function textOf(name: string, value: unknown): string {
  if (typeof value !== 'string' && typeof value !== 'number') {
    throw invalid(name, 'expected a string or a number');
  }
  return String(value);
}

const invalid = (name: string, message: string) =>
  new RpcError('invalidParams', `${name}: ${message}`);
