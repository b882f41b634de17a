/** `posthouse check` and `posthouse doctor` as an operator types them, with a running relay. */
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { CheckedNetwork } from '../operations/checked-network.ts';
import { killAll, posthouse } from '../support/command.ts';

let relays: CheckedNetwork;
beforeAll(async () => {
  relays = await CheckedNetwork.start();
}, 120_000);
afterEach(() => killAll());
afterAll(() => relays[Symbol.asyncDispose]());

async function run(args: readonly string[], more: Record<string, string> = {}) {
  const { ended, output } = posthouse(args, { ...relays.environment, ...more });
  const code = await ended;
  return { code, text: output.text, errors: output.errors };
}

test('07 §B2: doctor prints a line for each check, its count, and ends with 0 without a failure', async () => {
  const { code, text, errors } = await run(['doctor']);
  const lines = text.trimEnd().split('\n');
  // The files of a certificate, a bus, nodes of the chain, the admin token, the policy program; on SQLite a
  // database server, on PostgreSQL the disk, which is the server's.
  const skipped = 6;
  expect(lines.filter((line) => !/^(ok|skipped) /.test(line))).toEqual([
    '',
    `${23 - skipped} ok, 0 warning, 0 failed, ${skipped} skipped`,
  ]);
  const { peerPort, https } = relays.a.server;
  expect(text).toContain(
    `\nok       peer port           /ip4/127.0.0.1/tcp/${peerPort} reached by 1 relay\n`,
  );
  expect(text).toContain(`this relay is active at ${https[0]}`);
  expect([code, errors]).toEqual([0, '']);
}, 120_000);

test('a failed check is printed with its cure, and the exit status is 1', async () => {
  const { code, text } = await run(['check'], { POSTHOUSE_DATA: `${relays.folder}/none` });
  expect(text).toMatch(/^failed {3}data folder .*\n {29}-> create it with `posthouse init`/m);
  expect(code).toBe(1);
}, 60_000);

test('a configuration that is wrong is a failed check, without a stack', async () => {
  const { code, text, errors } = await run(['check'], { POSTHOUSE_LISTEN: 'nowhere' });
  expect(text).toMatch(/^failed {3}configuration {7}listen: expected/);
  expect([code, errors]).toEqual([1, '']);
}, 60_000);

test('with --json, each line is an object with the same members', async () => {
  const { code, text } = await run(['check', '--local', '--json']);
  const found = text
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as object);
  expect(found[0]).toEqual({
    ...{ check: 'configuration', outcome: 'ok', seen: expect.any(String) },
  });
  expect(found).toHaveLength(14);
  expect(code).toBe(0);
}, 60_000);

test('texts of others cannot write to the terminal', async () => {
  const { text } = await run(['check'], { POSTHOUSE_DATA: '/tmp/\u001b[31mred' });
  expect(text).not.toContain('\u001b');
}, 60_000);

test('wrong arguments end with 2', async () => {
  expect((await run(['doctor', '--nothing'])).code).toBe(2);
  expect((await run(['check', 'more'])).code).toBe(2);
}, 60_000);
