/**
 * Compares command lines of `posthouse` and `courier` in texts with what the commands
 * themselves parse by: nouns, verbs, flags, and how many arguments there may be. Nothing is run.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { courier } from '../packages/client/src/courier/program.ts';
import { createProgram } from '../packages/relay/src/commands/program.ts';

/** A command of the library that both programs parse with. */
export type Command = Awaited<ReturnType<typeof createProgram>>;

/** Loads the definitions of the commands that texts name. */
export async function loadCommands(): Promise<ReadonlyMap<string, Command>> {
  const environment = {
    ...{ env: {}, write() {}, writeError() {}, signal: new AbortController().signal },
    readInput: () => Promise.reject(new Error('no input')),
    askSecret: () => Promise.reject(new Error('no input')),
    drained: () => Promise.resolve(),
    openLines(): never {
      throw new Error('no input');
    },
  };
  const roots = [await createProgram(), await courier(undefined, environment)];
  return new Map(roots.map((root) => [root.name(), root]));
}

/** Returns the command lines of a page: in code blocks, and between backquotes. */
export function commandLines(page: string): string[] {
  const blocks = [...page.matchAll(/^```[a-z]*\n(.*?)^```/gms)].map(([, text = '']) => text);
  const rest = page.replaceAll(/^```.*?^```/gms, '');
  const inline = [...rest.matchAll(/`([^`]+)`/g)].map(([, text = '']) =>
    text.replaceAll('\n', ' '),
  );
  const lines = blocks.flatMap((text) => text.replaceAll(/\\\n/g, ' ').split('\n'));
  return [...lines, ...inline].flatMap((line) => linesIn(line));
}

/** Finds commands at the beginning of a line, and after what may run them. */
function linesIn(line: string): string[] {
  const [, command] =
    /(?:^|[|;&(]|\b(?:npx|sudo|exec)(?: -\S+)*(?: [a-z]+(?= posthouse))?)\s*(?:\$ )?((?:posthouse|courier) [a-z-].*)$/.exec(
      line.trim(),
    ) ?? [];
  return command === undefined ? [] : [command];
}

/** Words of a command line until something else begins: a pipe, another command, a remark. */
function wordsOf(line: string): string[] {
  const words = line.match(/(?:"[^"]*"|'[^']*'|<[^>]*>|[^\s"'])+/g) ?? [];
  const end = words.findIndex((word) => /^(?:[|>&;#]|2>)|[;|)]$/.test(word));
  return (end === -1 ? words : words.slice(0, end + 1))
    .filter((word) => !/^(?:[|>&;#]|2>)/.test(word))
    .map((word) => word.replace(/[;|),]+$/, '').replace(/^\[|\]$/g, ''))
    .filter((word) => word !== '' && word !== '...' && word !== '…');
}

/**
 * Says what is wrong with a command line; `undefined` if its verbs and flags exist and it has not too many
 * arguments. Some may be missing: a text may name a command alone.
 */
export function faultOf(line: string, commands: ReadonlyMap<string, Command>): string | undefined {
  const [name = '', ...words] = wordsOf(line);
  let command = commands.get(name);
  if (command === undefined) return `there is no command ${name}`;
  const operands: string[] = [];
  for (let at = 0; at < words.length; at += 1) {
    const word = words[at] as string;
    if (word === '--') return undefined;
    if (/^-./.test(word)) {
      const flag = word.split('=', 1)[0] as string;
      if (isCommon(flag)) continue;
      const option = optionOf(command, flag);
      if (option === undefined) return `${pathOf(command)} has no ${flag}`;
      if (option.required && !word.includes('=')) at += 1;
      continue;
    }
    // Commander adds it.
    if (word === 'help' && operands.length === 0) continue;
    const verb: Command | undefined =
      operands.length > 0
        ? undefined
        : command.commands.find((one) => one.name() === word || one.aliases().includes(word));
    if (verb !== undefined) command = verb;
    else operands.push(word);
  }
  return operandFault(command, operands);
}

function operandFault(command: Command, operands: readonly string[]): string | undefined {
  const { registeredArguments: all } = command;
  const isOpen = all.at(-1)?.variadic === true || command.commands.some(isDefault);
  if (!isOpen && operands.length > all.length) {
    return `${pathOf(command)} takes no '${operands[all.length]}'`;
  }
  for (const [index, { argChoices }] of all.entries()) {
    const given = operands[index];
    const isKnown = given === undefined || (argChoices?.includes(given) ?? true);
    if (!isKnown && !isPlaceholder(given)) return `${pathOf(command)} takes no '${given}'`;
  }
  return undefined;
}

/** `KIND`, `<kind>`. */
const isPlaceholder = (word: string) => /^[A-Z_]+$|^</.test(word);

const isCommon = (flag: string) => flag === '--help' || flag === '-h';

function isDefault(command: Command): boolean {
  return (
    (command.parent as { _defaultCommandName?: string } | null)?._defaultCommandName ===
    command.name()
  );
}

function optionOf(command: Command, flag: string) {
  for (let at: Command | null = command; at !== null; at = at.parent) {
    const found = at.options.find(({ long, short }) => flag === long || flag === short);
    if (found !== undefined) return found;
  }
  return undefined;
}

function pathOf(command: Command): string {
  return command.parent === null ? command.name() : `${pathOf(command.parent)} ${command.name()}`;
}

/** Finds command lines of pages that the commands would refuse; each with the page's path. */
export async function checkCommandLines(root: string, pages: readonly string[]): Promise<string[]> {
  const commands = await loadCommands();
  return pages.flatMap((page) =>
    commandLines(readFileSync(join(root, page), 'utf8')).flatMap((line) => {
      const fault = faultOf(line, commands);
      return fault === undefined ? [] : [`${page}: ${fault}: ${line}`];
    }),
  );
}
