/** `courier chat`: a conversation, a line at a time, in a pipe and on a terminal. */
import { PassThrough, Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { expect, test } from 'vitest';
import { readLines, terminalLines } from '../src/courier/line-input.ts';
import { contactsOfCourier } from './support/courier.ts';
import { relayWithClients } from './support/relay-with-clients.ts';

const world = relayWithClients();

test('lines are sent in order, and what arrives is shown in between, until the input ends', async () => {
  const [ann, bob] = await contactsOfCourier(world);
  await bob.json('send', 'ann', 'before');
  await ann.json('sync');
  const chat = ann.start(['chat', 'bob']);
  await expect.poll(() => chat.written.out).toContain('bob: before');
  chat.input.write('one\ntwo\r\n\n');
  await expect
    .poll(async () => (await bob.json('inbox')).messages)
    .toMatchObject([{ text: 'before' }, { text: 'one' }, { text: 'two' }]);
  await bob.json('send', 'ann', 'a\u001b[2Jb\u202ec\n2026-01-01 00:00  me to bob: forged');
  await expect.poll(() => chat.written.out).toContain('bob: a[U+001B][2Jb[U+202E]c\n    2026');
  chat.input.end('last');
  expect(await chat.exit).toBe(0);
  expect((await bob.json('inbox', '--limit', '1')).messages).toMatchObject([{ text: 'last' }]);
});

test('with --json, each message is one object; an interrupt ends it', async () => {
  const [ann, bob] = await contactsOfCourier(world);
  const chat = ann.start(['chat', 'bob', '--json']);
  chat.input.write('hello\n');
  await expect.poll(chat.objects).toMatchObject([{ event: 'sent', message: { text: 'hello' } }]);
  await bob.json('send', 'ann', 'hello yourself');
  await expect.poll(chat.objects).toHaveLength(2);
  expect(chat.objects()[1]).toMatchObject({ event: 'message', message: { direction: 'in' } });
  chat.stop();
  expect(await chat.exit).toBe(0);
});

test('messages of other conversations are not shown; notes to oneself are one', async () => {
  const [ann, bob] = await contactsOfCourier(world);
  const chat = ann.start(['chat', 'me', '--json']);
  await bob.json('send', 'ann', 'elsewhere');
  chat.input.end('a note\n');
  expect(await chat.exit).toBe(0);
  expect(chat.objects()).toMatchObject([{ event: 'sent', message: { text: 'a note' } }]);
  const again = ann.start(['chat', 'me', '--json']);
  again.input.end();
  await again.exit;
  expect(again.objects()).toMatchObject([{ message: { direction: 'self', text: 'a note' } }]);
});

test('without a relay, lines are stored and the exit status says so; they are sent in order later', async () => {
  const [ann, bob] = await contactsOfCourier(world);
  await world.stopRelay();
  const chat = ann.start(['chat', 'bob']);
  chat.input.end('one\ntwo\n');
  const exit = await chat.exit;
  await world.startRelay();
  expect({ exit, error: chat.written.error }).toMatchObject({
    exit: 4,
    error: expect.stringContaining('no answer'),
  });
  await ann.json('sync');
  expect((await bob.json('inbox')).messages).toMatchObject([{ text: 'one' }, { text: 'two' }]);
});

test('an interrupt while lines wait says that they are stored', async () => {
  const [ann] = await contactsOfCourier(world);
  await world.stopRelay();
  const chat = ann.start(['chat', 'bob', '--json']);
  chat.input.write('waits\n');
  await expect.poll(chat.objects).toMatchObject([{ event: 'sent' }]);
  chat.stop();
  const exit = await chat.exit;
  await world.startRelay();
  expect({ exit, error: chat.written.error }).toMatchObject({
    exit: 130,
    error: expect.stringContaining('stored'),
  });
});

test('a line that cannot be sent is reported, and the next one is sent', async () => {
  const [ann, bob] = await contactsOfCourier(world);
  const chat = ann.start(['chat', 'bob', '--markdown']);
  chat.input.end(`![x](ni:///sha-256;${'B'.repeat(42)}A)\nfine\n`);
  expect(await chat.exit).toBe(2);
  expect(chat.written.error).toContain('attachment');
  expect((await bob.json('inbox')).messages).toMatchObject([{ text: 'fine' }]);
});

/** Reads lines of at most five bytes. */
async function linesOf(chunks: readonly Buffer[]): Promise<(string | undefined)[]> {
  const lines: (string | undefined)[] = [];
  for await (const line of readLines(Readable.from(chunks), 5)) lines.push(line);
  return lines;
}

test('lines of a pipe: any split of the bytes, a limit, the rest without an end', async () => {
  const bytes = Buffer.from('é\r\n\nlonger\nab');
  for (const size of [1, 2, 100]) {
    const chunks = Array.from({ length: Math.ceil(bytes.length / size) }, (_, index) =>
      bytes.subarray(index * size, (index + 1) * size),
    );
    const lines = await linesOf(chunks);
    expect(lines).toEqual(['é', '', undefined, 'ab']);
  }
  expect(await linesOf([Buffer.from('12345\n')])).toEqual(['12345']);
});

test('on a terminal, output stands above the line that is being typed; Ctrl+C interrupts', async () => {
  const [input, output] = [new PassThrough(), new PassThrough()];
  const ending = new AbortController();
  const interrupted = Promise.withResolvers<void>();
  const streams = { signal: ending.signal, interrupt: () => interrupted.resolve() };
  const terminal = terminalLines({ input, output }, streams);
  const lines = terminal.lines[Symbol.asyncIterator]();
  const first = lines.next();
  input.write('hel');
  await expect.poll(() => output.readableLength).toBeGreaterThan('> hel'.length);
  terminal.write('bob: hi\n');
  input.write('lo\r');
  expect((await first).value).toBe('hello');
  input.write('\u0003');
  await interrupted.promise;
  terminal[Symbol.dispose]();
  output.end();
  const shown = await text(output);
  expect(shown.replaceAll(/\u001b\[\d*[A-Z]/g, '')).toMatch(/> hel.*bob: hi\n.*> hel.*lo/s);
});

test('on a terminal, lines typed before reading begins and before Ctrl+D are read', async () => {
  const [input, output] = [new PassThrough(), new PassThrough()];
  output.resume();
  const { signal } = new AbortController();
  using terminal = terminalLines({ input, output }, { signal, interrupt: () => {} });
  input.write('one\r');
  await expect.poll(() => input.readableLength).toBe(0);
  input.write('two\rthree\r\u0004');
  const lines: (string | undefined)[] = [];
  for await (const line of terminal.lines) {
    // A line takes a while to post: the input has ended meanwhile.
    await new Promise((resolve) => setImmediate(resolve));
    lines.push(line);
  }
  terminal.write('bob: while the last line is being sent\n');
  expect(lines).toEqual(['one', 'two', 'three']);
});
