/** A relay that people use, moved to PostgreSQL and back: they notice nothing. */

import type { Challenge, SessionCredentials } from '@posthouse/protocol';
import { nodePrimitives } from '@posthouse/protocol/node';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { RelayConfig } from '../../src/config/index.ts';
import { type DatabaseAddress, parseAddress } from '../../src/storage/move/move.ts';
import { Person } from '../fixtures/person.ts';
import { codeOf } from '../support/http.ts';
import { ServedRelay, type ServedRelayData } from '../support/served-relay.ts';
import { configOf, contents, Databases, furnish, move } from './databases.ts';

let databases: Databases;

beforeAll(async () => {
  databases = await Databases.start();
});
afterAll(() => databases[Symbol.asyncDispose]());

/** A data folder with a database that may be elsewhere, and another one at the next start. */
class Somewhere implements ServedRelayData {
  readonly path: string;
  address: DatabaseAddress;

  constructor(folder: string) {
    this.path = folder;
    this.address = parseAddress(`sqlite:${folder}`);
  }

  get config(): { readonly data: string; readonly storage: RelayConfig['storage'] } {
    return { data: this.path, storage: configOf(this.address) };
  }

  async [Symbol.asyncDispose](): Promise<void> {}
}

interface Resident {
  readonly person: Person;
  readonly device: string;
  readonly session: SessionCredentials;
}

interface Page {
  readonly items: readonly { readonly sequence: number; readonly envelope: unknown }[];
}

async function timeline(relay: ServedRelay, { session }: Resident, after = -1): Promise<Page> {
  const params = { after, limit: 100 };
  const answer = await relay.http().call('message.timeline.sync', params, { token: session.token });
  expect(codeOf(answer)).toBe('ok');
  return JSON.parse(answer.text) as Page;
}

async function send(relay: ServedRelay, from: Resident, to: Person, text: string): Promise<string> {
  const message = from.person.message(to, {
    device: from.device,
    text,
    senders: [...from.person.devices.keys()].filter((name) => name !== from.device),
    authorization: to.invite(),
  });
  const { token } = from.session;
  const answer = await relay.http().call('message.send', message, { token });
  expect(answer.text).toMatch(/"status":"(?:target_accepted|delivering)"/);
  return message.envelope.message_id;
}

test('timelines, sessions, challenges, sequences and the queue go to PostgreSQL and back', async () => {
  const data = new Somewhere(databases.folder());
  await using relay = await ServedRelay.start({}, data);
  const residents: Resident[] = [];
  for (const name of ['ann', 'ben', 'cem', 'dot', 'eva', 'fay']) {
    const person = await relay.register(name, ['phone', 'laptop']);
    for (const device of ['phone', 'laptop']) {
      residents.push({ person, device, session: await relay.logInDevice(person, device) });
    }
    const { token } = (residents.at(-2) as Resident).session;
    const profile = person.profile({ nickname: `${name} é😀\uffff'"\\` });
    expect(codeOf(await relay.http().call('profile.publish', profile, { token }))).toBe('ok');
  }
  const [ann, , ben] = residents as [Resident, Resident, Resident];
  const texts = ['hi', '', 'grüß dich 😀\uffff', 'line\nline\u2028', `"'\\$1`, 'x'.repeat(60_000)];
  for (const [index, from] of residents.entries()) {
    for (const [step, text] of texts.entries()) {
      const to = residents[(index + 2 * step + 2) % residents.length] as Resident;
      if (to.person !== from.person) await send(relay, from, to.person, text);
    }
  }
  // The recipient is unknown to this relay: the message waits in the queue.
  const zoe = new Person(relay, 'zoe');
  await zoe.addDevice('phone');
  const waiting = await send(relay, ann, zoe, 'welcome');
  // What has expired, and was not removed yet, moves as well.
  await relay.challenge(ann.person.account);
  relay.clock.advance(200);
  const { nonce } = (await relay.challenge(ann.person.account)) satisfies Challenge;

  const before = await Promise.all(residents.map((resident) => timeline(relay, resident)));
  expect(before.every((page) => page.items.length >= 5)).toBe(true);
  const start = data.address;
  const digests: string[] = [];
  for (const to of [await databases.postgres(), start]) {
    const from = data.address;
    await relay.stop();
    const rows = await contents(from);
    const { state, tables } = await move(from, to, { replace: to === start });
    expect(state).toBe('moved');
    expect(await contents(to)).toEqual(rows);
    digests.push(tables.map(({ source, target }) => `${source.digest} ${target.digest}`).join());
    expect(rows.deliveries).toHaveLength(1);
    // No relay starts on the old copy.
    await expect(relay.restart()).rejects.toThrow('the database was moved to');
    data.address = to;
    await relay.restart();
    const after = await Promise.all(residents.map((resident) => timeline(relay, resident)));
    for (const [index, page] of after.entries()) {
      expect(page.items.slice(0, before[index]?.items.length)).toEqual(before[index]?.items);
    }

    if (to === start) continue;
    const proof = relay.deviceProof(ann.person.device('phone'), nonce);
    expect(codeOf(await relay.http().call('auth.device.verify', proof))).toBe('ok');
    expect(codeOf(await relay.http().call('auth.device.verify', proof))).not.toBe('ok');
    const last = (await timeline(relay, ben)).items.at(-1)?.sequence ?? 0;
    await send(relay, ann, ben.person, 'from here on');
    const next = await timeline(relay, ben, last);
    expect(next.items.map(({ sequence }) => sequence)).toEqual([last + 1]);
  }
  expect(new Set(digests).size).toBe(2);
  const { token } = ann.session;
  const status = await relay
    .http()
    .call('message.delivery.status', { message_id: waiting }, { token });
  expect(status.text).toContain('"status":"delivering"');
  await zoe.moveIn();
  // The next attempt is due.
  relay.clock.advance(600);
  const arrived = { person: zoe, device: 'phone', session: await relay.logInDevice(zoe) };
  while ((await timeline(relay, arrived)).items.length === 0);
});

test('the digest is SHA-256 over the columns and the rows in the order of the key', async () => {
  const [from, to] = [await databases.sqlite(), await databases.postgres()];
  await furnish(from);
  const { tables } = await move(from, to);
  const lines = [
    ['timeline_heads', 'account', 'head'],
    ['ann', 1],
  ];
  const text = lines.map((line) => `${JSON.stringify(line)}\n`).join('');
  const digest = Buffer.from(nodePrimitives.sha256(new TextEncoder().encode(text))).toString('hex');
  const heads = tables.find(({ table }) => table === 'timeline_heads');
  expect(heads).toEqual({
    table: 'timeline_heads',
    source: { rows: 1, digest },
    target: { rows: 1, digest },
  });
});
