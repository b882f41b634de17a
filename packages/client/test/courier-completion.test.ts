/** `courier completion`: scripts for shells, made from the command's own definition. */
import { spawnSync } from 'node:child_process';
import { tmpdir } from 'node:os';
import { expect, test } from 'vitest';
import { Person } from './support/courier.ts';

const person = new Person({ folder: tmpdir() }, 'without-account');

async function script(shell: string): Promise<string> {
  const { exit, out, error } = await person.run(['completion', shell]);
  expect({ exit, error }).toEqual({ exit: 0, error: '' });
  return out;
}

/** Whether a shell is installed. */
const has = (shell: string) => spawnSync(shell, ['-c', 'exit 0']).status === 0;

function run(shell: string, text: string): string[] {
  const { status, stdout, stderr } = spawnSync(shell, ['-c', text], { encoding: 'utf8' });
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  return stdout.split('\n').filter((line) => line !== '');
}

test.each([
  [['gr'], ['group']],
  [
    ['group', 'inv'],
    ['invite', 'invites'],
  ],
  [['group', 'send', '--'], expect.arrayContaining(['--file', '--reply', '--json'])],
  [['--ver'], ['--version']],
  [
    ['send', 'group', '--r'],
    ['--registry', '--registry-node', '--registry-agree'],
  ],
  [['send', 'bob', 'x'], []],
])('bash completes courier %j', async (words, expected) => {
  const line = ['courier', ...words].map((word) => `'${word}'`).join(' ');
  const ask = `COMP_WORDS=(${line}); COMP_CWORD=${words.length}; _courier; printf '%s\\n' "\${COMPREPLY[@]}"`;
  expect(run('bash', `${await script('bash')}\n${ask}`)).toEqual(expected);
});

test.skipIf(!has('zsh'))('zsh completes a command, a verb and an option', async () => {
  // Stands for what zsh does with candidates; the function itself runs only while a line is edited.
  const shell = `
    compdef() { print $@ }
    compadd() { shift; print -l -- \${(M)@:#$PREFIX*} }
    _files() { print files }`;
  const asks = ['gr', 'group inv', 'group send --rep'].map((line) => {
    const words = `courier ${line}`.split(' ');
    return `words=(${words.join(' ')}); CURRENT=${words.length}; PREFIX=${words.at(-1)}; _courier`;
  });
  const text = `${shell}\n${await script('zsh')}\n${asks.join('\n')}`;
  expect(run('zsh', text)).toEqual([
    ...['_courier courier', 'group', 'files', 'invite', 'invites', 'files', '--reply'],
  ]);
});

test.skipIf(!has('fish'))('fish completes a command, a verb and an option', async () => {
  const asks = ['gr', 'group inv', 'group send --rep'].map(
    (line) => `complete -C 'courier ${line}'`,
  );
  const found = run('fish', `${await script('fish')}\n${asks.join('\n')}`);
  expect(found.map((line) => line.split('\t')[0])).toEqual([
    ...['group', 'invite', 'invites', '--reply'],
  ]);
});

test('each script names every command; another shell is refused', async () => {
  for (const shell of ['bash', 'zsh', 'fish']) {
    const text = await script(shell);
    for (const name of ['setup', 'completion', 'recoveries', 'cancel'])
      expect(text).toContain(name);
  }
  expect((await person.run(['completion', 'constructor'])).exit).toBe(2);
});
