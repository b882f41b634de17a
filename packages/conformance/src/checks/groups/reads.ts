/** Pages of events and keys (05 §12.8, §13.4, §13.25). */
import {
  encodeBase64url,
  type GroupEvent,
  openRelaySecret,
  verifyGroupSyncPage,
} from '@posthouse/protocol';
import { canonicalJson, type JsonObject } from '@posthouse/protocol/json';
import { assertConforms, assertEqual } from '../../assert.ts';
import { checksOf } from '../../check.ts';
import { assertAllRefused } from '../../fixtures/refusals.ts';
import { publishDevices, withDevice } from '../../fixtures/test-accounts.ts';
import type { TestAccount, TestContext } from '../../fixtures/test-context.ts';
import { groupFixture } from '../../groups/group-fixture.ts';
import type { GroupObjects } from '../../groups/group-objects.ts';
import {
  eventOf,
  openKeys,
  readChain,
  readEpochSecret,
  readHead,
  readKeyPage,
} from '../../groups/group-reader.ts';

const sync = checksOf('group.sync');
const keys = checksOf('group.key.sync');

/** Creates a group with events of several devices, three of them messages. */
async function populatedGroup(context: TestContext) {
  const fixture = await groupFixture(context, { members: 1, devices: 2 });
  const { group, owner, members } = fixture;
  const [ben] = members as [TestAccount];
  await group.update({ name: 'one' }, withDevice(owner, 1));
  await readChain(group, ben);
  for (const by of [owner, ben, withDevice(ben, 1)]) await group.send(by, 1);
  await group.update({ name: 'two' });
  return { ...fixture, ben };
}

/** Invalid positions and limits (05 §12.8); in a query, numbers are text (02 §2.4). */
function* wrongPages(
  { groupId: group_id }: GroupObjects,
  end: number,
): Generator<readonly [string, JsonObject]> {
  for (const after of [end + 1, -2, 'x', '', '00', '+1', '1.0', '1e0', '-0']) {
    yield [`a position of ${after}`, { group_id, after }];
  }
  for (const limit of [0, -1, '01']) yield [`a limit of ${limit}`, { group_id, limit }];
}

sync.check(
  'pages',
  { source: '05 §12.8, §13.4', title: 'returns the same events in pages of any size' },
  async (context) => {
    const { group, ben } = await populatedGroup(context);
    const whole = (await readChain(group, ben)).outcomes.map(eventOf);
    assertEqual(whole.length, 7, 'the number of events');
    for (const limit of [1, 2, 3, 7, Number.MAX_SAFE_INTEGER]) {
      const { outcomes } = await readChain(group, ben, { limit });
      const again = outcomes.map(eventOf);
      assertEqual(again as never, whole as never, `the events in pages of ${limit}`);
    }
  },
);

sync.check(
  'positions',
  { source: '05 §12.8', title: 'accepts positions from -1 to the head and refuses others' },
  async (context) => {
    const { group, owner } = await populatedGroup(context);
    const { sequence } = await readHead(group, owner);
    const group_id = group.groupId;
    const method = 'group.sync';
    for (const after of [-1, 0, sequence - 1, sequence]) {
      const page: unknown = await context.expectOk(owner.caller, method, { group_id, after });
      const { events, has_more } = verifyGroupSyncPage(context.network, page, { after });
      assertEqual(
        events.length === 0,
        after === sequence,
        'an empty page if and only if at the head',
      );
      assertConforms(!has_more, 'no more');
    }
    const refused = { by: owner, method, codes: ['bad_request'] } as const;
    await assertAllRefused(refused, wrongPages(group, sequence));
  },
);

sync.check(
  'certificates',
  { source: '05 §13.4', title: 'returns one certificate for each signing device' },
  async (context) => {
    const { group, owner, ben } = await populatedGroup(context);
    const params = { group_id: group.groupId };
    const answer: unknown = await context.expectOk(ben.caller, 'group.sync', params);
    const { signers } = verifyGroupSyncPage(context.network, answer, {});
    const ids = [
      owner.device.id,
      withDevice(owner, 1).device.id,
      ben.device.id,
      withDevice(ben, 1).device.id,
    ];
    assertConforms(
      ids.every((id) => signers.has(id)),
      'the certificates of all four devices',
    );
    assertEqual(
      signers.get(ben.device.id)?.account,
      ben.account.id,
      'the account of the certificate',
    );
  },
);

sync.check(
  'removed-signer',
  { source: '05 §11.2, §12.6', title: 'returns the certificate of a removed device' },
  async (context) => {
    const { group, owner, ben } = await populatedGroup(context);
    await publishDevices(context, owner, [owner.device]);
    const { outcomes } = await readChain(group, ben);
    const devices = outcomes.map((outcome) => eventOf(outcome).signer_device_id);
    assertConforms(
      devices.includes(withDevice(owner, 1).device.id),
      'the event of the removed device verifies',
    );
  },
);

sync.check(
  'other-transport',
  { source: '02 §2.1, 05 §21', title: 'returns the same over both transports' },
  async (context) => {
    const { group, ben } = await populatedGroup(context);
    const params = { group_id: group.groupId };
    const other = await context.deviceSession(ben.device, context.otherTransport);
    const read = async (caller: TestAccount['caller']) => {
      const page = (await context.expectOk(caller, 'group.sync', params)) as JsonObject;
      return canonicalJson(page.events as unknown as GroupEvent[] as never);
    };
    assertEqual(await read(ben.caller), await read(other), 'the same events');
  },
);

sync.check(
  'large-pages',
  { source: '05 §12.2, §12.8', title: 'returns all events if they do not fit on one page' },
  async (context) => {
    const { group, owner } = await groupFixture(context);
    const filling = 'x'.repeat(240_000);
    for (let count = 0; count < 5; count += 1) {
      await context.expectOk(
        owner.caller,
        'group.message.send',
        group.message(owner, 0, { filling }),
      );
    }
    const { outcomes } = await readChain(group, owner);
    assertEqual(outcomes.length, 6, 'the number of events');
  },
);

sync.check(
  'while-writing',
  { source: '05 §13.4', title: 'returns every event that is appended during reading' },
  async (context) => {
    const { group, owner, ben } = await populatedGroup(context);
    let writing = true;
    const writes = Array.from({ length: 8 }, () => group.send(owner, 1));
    const sent = Promise.all(writes).finally(() => {
      writing = false;
    });
    const seen: number[] = [];
    for (let more = true; more; ) {
      const unfinished = writing;
      const params = { group_id: group.groupId, after: seen.at(-1) ?? -1, limit: 2 };
      const answer: unknown = await context.expectOk(ben.caller, 'group.sync', params);
      const { events } = verifyGroupSyncPage(context.network, answer, params);
      seen.push(...events.map(({ sequence }) => sequence));
      more = unfinished || events.length > 0;
    }
    for (const sequence of await sent)
      assertConforms(seen.includes(sequence), `message ${sequence} in the events read`);
    assertEqual(new Set(seen).size, seen.length, 'no event twice');
  },
);

keys.check(
  'pages',
  {
    source: '05 §4.11, §12.8',
    title: 'returns all epochs in pages of any size, each page complete',
  },
  async (context) => {
    const { group, owner, strangers } = await groupFixture(context, { strangers: 1 });
    await group.rotate([owner]);
    await group.admit(...strangers);
    await group.rotate([owner, ...strangers]);
    const { history } = await readChain(group, owner);
    for (const limit of [1, 2, 3, 10]) {
      const epochs: number[] = [];
      for (let more = true; more; ) {
        const after = epochs.at(-1) ?? -1;
        const page = await readKeyPage(group, owner, { after, limit });
        assertConforms(page.keys.length > 0, 'no empty page while there is more');
        for (const { epoch, status } of openKeys(group, owner, { page, history })) {
          assertEqual(status, 'verified', `epoch ${epoch} opens in pages of ${limit}`);
          epochs.push(epoch);
        }
        more = page.has_more;
      }
      assertEqual(epochs.length, 4, 'the number of epochs');
    }
  },
);

keys.check(
  'boxes',
  { source: '05 §4.11, §7.4', title: 'returns the original boxes, each once on a page' },
  async (context) => {
    const { group, owner } = await groupFixture(context, { members: 1 });
    const { keys: entries } = await readKeyPage(group, owner);
    const [first, second] = entries;
    assertConforms(
      first !== undefined && second !== undefined && entries.length === 2,
      'two epochs',
    );
    assertConforms(first.client_secret_box !== undefined, 'a box in the first entry');
    assertEqual(
      second.client_secret_box,
      undefined,
      'no box in an entry with the same box as before',
    );
    const { keys: rest } = await readKeyPage(group, owner, { after: first.epoch });
    const [box, same] = [first.client_secret_box, rest[0]?.client_secret_box];
    assertConforms(same !== undefined, 'a box in the first entry of the next page');
    assertEqual(same, box, 'the box is the original one');
  },
);

keys.check(
  'devices',
  { source: '05 §3.7, §13.25', title: 'seals the same relay secret to each device that reads' },
  async (context) => {
    const { group, owner } = await groupFixture(context, { members: 1, devices: 2 });
    const [here, there] = [
      await readEpochSecret(group, owner),
      await readEpochSecret(group, withDevice(owner, 1)),
    ];
    const text = (secret: Uint8Array) => encodeBase64url(secret);
    assertEqual(here.epoch, there.epoch, 'the epoch for both devices');
    assertEqual(
      text(here.applicationSecret),
      text(there.applicationSecret),
      'the secret for both devices',
    );
  },
);

keys.check(
  'fresh-secrets',
  { source: '05 §7.1, §7.2', title: 'uses another relay secret in every epoch' },
  async (context) => {
    const { group, owner, members } = await groupFixture(context, { members: 1 });
    await group.rotate([owner, ...members]);
    const { keys: entries } = await readKeyPage(group, owner);
    const of = { group_id: group.groupId, account: owner.account.id, device_id: owner.device.id };
    const secrets = entries.map(({ epoch, relay_secret_box: box }) => {
      const privateKey = owner.device.encryptionKey;
      const secret = openRelaySecret(context.network, { ...of, epoch }, { box, privateKey });
      return secret && encodeBase64url(secret);
    });
    assertConforms(secrets.length === 3 && !secrets.includes(undefined), 'three secrets');
    assertEqual(new Set(secrets).size, 3, 'the number of different secrets');
  },
);

keys.check(
  'positions',
  {
    source: '05 §12.8, §13.25',
    title: 'accepts positions from -1 to the epoch and refuses others',
  },
  async (context) => {
    const { group, owner } = await groupFixture(context, { members: 1 });
    const { epoch } = await readHead(group, owner);
    const page = await readKeyPage(group, owner, { after: epoch });
    assertConforms(page.keys.length === 0 && !page.has_more, 'an empty page at the current epoch');
    const refused = { by: owner, method: 'group.key.sync', codes: ['bad_request'] } as const;
    await assertAllRefused(refused, wrongPages(group, epoch));
  },
);

export const groupReadChecks = [...sync.list, ...keys.list];
