/** Command lines in texts, and the help of each command, against what the commands parse by. */
import { beforeAll, expect, test } from 'vitest';
import { type Command, commandLines, faultOf, loadCommands } from './command-lines.ts';

let commands: ReadonlyMap<string, Command>;
beforeAll(async () => {
  commands = await loadCommands();
});

const leavesOf = (command: Command): Command[] =>
  command.commands.length === 0 ? [command] : command.commands.flatMap(leavesOf);

function helpOf(command: Command): string {
  let help = '';
  const writeOut = (text: string) => {
    help += text;
  };
  command.configureOutput({ writeOut });
  command.outputHelp();
  return help;
}

test.each([
  ['posthouse account allow ACCOUNT', undefined],
  ['posthouse account', undefined],
  ['posthouse invite create --uses 30 --note "rowing club" --config FILE | cat -x', undefined],
  ['posthouse block add address NETWORK --until 2027-01-01', undefined],
  ['courier move --to RELAY [--dry-run | --status]', undefined],
  ['posthouse acount allow ACCOUNT', "posthouse takes no 'acount'"],
  ['posthouse account alow ACCOUNT', "posthouse account takes no 'alow'"],
  ['posthouse account allow ACCOUNT OTHER', "posthouse account allow takes no 'OTHER'"],
  ['posthouse invite create --use 3', 'posthouse invite create has no --use'],
  ['posthouse block add acount X', "posthouse block add takes no 'acount'"],
  ['courier move --too RELAY', 'courier move has no --too'],
])('%s: %s', (line, fault) => {
  expect(faultOf(line, commands)).toBe(fault);
});

test('lines are found in code blocks and between backquotes, also after sudo and npx', () => {
  const page = [
    '`posthouse stats` and the posthouse of old',
    '```sh',
    '$ npx courier inbox \\',
    '  --follow',
    'sudo -u relay posthouse check --json > out',
    'journalctl -u posthouse -f',
    '```',
  ].join('\n');
  expect(commandLines(page)).toEqual([
    ...['courier inbox    --follow', 'posthouse check --json > out', 'posthouse stats'],
  ]);
});

test('the help of each verb of posthouse names the verb and has an example, and all examples are right', () => {
  const leaves = leavesOf(commands.get('posthouse') as Command);
  expect(leaves.length).toBeGreaterThan(40);
  for (const command of leaves) {
    const help = helpOf(command);
    const path = [command.parent?.parent && command.parent.name(), command.name()]
      .filter((name) => typeof name === 'string')
      .join(' ');
    expect(help).toContain(`Usage: posthouse ${path} `);
    const examples = [...help.matchAll(/^ {2}((?:posthouse|courier) .*)$/gm)].map(
      ([, line]) => line,
    );
    expect([path, examples.length > 0]).toEqual([path, true]);
    for (const line of examples) expect(faultOf(String(line), commands)).toBeUndefined();
  }
});

test('each verb of posthouse refuses an unknown flag', async () => {
  const root = (await loadCommands()).get('posthouse') as Command;
  for (const leaf of leavesOf(root)) {
    for (let at: Command | null = leaf; at !== null; at = at.parent) {
      at.exitOverride().configureOutput({ writeErr() {} });
    }
    const noun = leaf.parent === root ? [] : [String(leaf.parent?.name())];
    const needed = leaf.options.filter(({ mandatory }) => mandatory);
    const flags = needed.flatMap(({ long }) => [String(long), 'x']);
    const words = [...noun, leaf.name(), ...flags, '--no-such-flag'];
    const parsing = root.parseAsync(words, { from: 'user' });
    await expect(parsing).rejects.toMatchObject({ code: 'commander.unknownOption' });
  }
});
