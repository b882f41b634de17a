import { checkTimelinePage, type MessageTimelineEntry, openMessage } from '@posthouse/protocol';
import type { JsonObject } from '@posthouse/protocol/json';
import { assertConforms, assertEqual } from '../assert.ts';
import { checksOf } from '../check.ts';
import type { Device } from '../fixtures/account.ts';
import { directMessage, grantedMessage } from '../fixtures/direct-messages.ts';
import type { TestAccount, TestContext } from '../fixtures/test-context.ts';
import type { WssCaller } from '../transport/caller.ts';

const status = checksOf('message.delivery.status');
const sync = checksOf('message.timeline.sync');
const method = 'message.timeline.sync';

interface Page {
  readonly items: MessageTimelineEntry[];
  readonly certificates: JsonObject[];
  readonly has_more: boolean;
  readonly has_retention_gap?: boolean;
}

/** Reads one page and checks it as a client does (04 §18.1). */
async function read(
  context: TestContext,
  reader: { readonly device: Device; readonly caller: TestAccount['caller'] },
  params: { readonly after?: number; readonly limit?: number } = {},
): Promise<Page> {
  const page: unknown = await context.expectOk(reader.caller, method, params);
  checkTimelinePage(context.network, page, {
    account: reader.device.account.id,
    deviceId: reader.device.id,
    after: params.after ?? -1,
    ...(params.limit === undefined ? {} : { limit: params.limit }),
  });
  return page as Page;
}

/** Sends a number of messages to the own account, with boxes for the devices. */
async function fill(
  context: TestContext,
  from: TestAccount,
  count: number,
  devices = from.devices,
) {
  const recipients = devices.map(({ certificate }) => certificate);
  for (let index = 0; index < count; index += 1) {
    const message = directMessage(from.device, {
      to: from.account.id,
      recipients,
      text: `message ${index}`,
    });
    await context.expectOk(from.caller, 'message.send', { ...message });
  }
}

sync.check(
  'readable',
  {
    source: '04 §17.2, §18',
    title: 'the recipient opens the message with the certificate on the page',
  },
  async (context) => {
    const [from, to] = [await context.testAccount(), await context.testAccount()];
    const senders = [from.device.certificate];
    const params = grantedMessage(from.device, [to.device], { senders, text: 'good morning' });
    await context.expectOk(from.caller, 'message.send', params);
    for (const reader of [to, from]) {
      const { items, certificates } = await read(context, reader);
      const [entry] = items as [MessageTimelineEntry];
      const opened = openMessage(context.network, {
        envelope: entry.envelope,
        keyBox: entry.key_box,
        certificate: certificates[0] as never,
        account: reader.account.id,
        deviceId: reader.device.id,
        encryptionPrivateKey: reader.device.encryptionKey,
      });
      assertConforms(
        new TextDecoder().decode(opened).includes('good morning'),
        'the text is readable',
      );
    }
  },
);

sync.check(
  'pages',
  { source: '04 §18', title: 'returns pages in order and without loss, with a correct has_more' },
  async (context) => {
    const owner = await context.testAccount();
    await fill(context, owner, 7);
    const sequences: number[] = [];
    let after = -1;
    for (let more = true; more; ) {
      const page = await read(context, owner, { after, limit: 3 });
      assertConforms(page.items.length > 0, 'no empty page while there is more');
      sequences.push(...page.items.map(({ sequence }) => sequence));
      after = sequences.at(-1) as number;
      more = page.has_more;
    }
    assertConforms(sequences.length === 7, `7 entries, not ${sequences.length}`);
    const end = await read(context, owner, { after });
    assertConforms(end.items.length === 0 && !end.has_more, 'the head gives an empty page');
  },
);

sync.check(
  'visibility',
  { source: '04 §17.3', title: 'a device sees only messages that had a box for it when accepted' },
  async (context) => {
    const owner = await context.testAccount({ devices: 2 });
    const [first, second] = owner.devices as [Device, Device];
    await fill(context, owner, 1, [first]);
    await fill(context, owner, 1, [first, second]);
    const seen = await read(context, { device: second, caller: owner.callers[1] as never });
    assertEqual(seen.items.length, 1, 'one entry for the second device');
    assertConforms(
      seen.has_retention_gap !== true,
      'no retention gap because of gaps in the sequence',
    );
    assertEqual((await read(context, owner)).items.length, 2, 'entries of the first device');
  },
);

sync.check(
  'later-device',
  { source: '04 §17.3', title: 'a device added later does not see earlier records' },
  async (context) => {
    const owner = await context.testAccount();
    const later = await owner.account.device();
    await fill(context, owner, 1, [owner.device, later]);
    const state = await owner.account.state([owner.device, later]);
    await context.expectOk(owner.caller, 'device.state.publish', state);
    const caller = await context.deviceSession(later);
    const page = await read(context, { device: later, caller });
    assertEqual(page.items.length, 0, 'entries from before the device was valid');
  },
);

sync.check(
  're-enabled-device',
  { source: '04 §17.3', title: 'a device removed and enabled again keeps its visibility' },
  async (context) => {
    const owner = await context.testAccount({ devices: 2 });
    const [first, second] = owner.devices as [Device, Device];
    await fill(context, owner, 1);
    const publish = 'device.state.publish';
    await context.expectOk(owner.caller, publish, await owner.account.state([first]));
    await fill(context, owner, 1);
    await context.expectOk(owner.caller, publish, await owner.account.state([first, second]));
    const caller = await context.deviceSession(second);
    const page = await read(context, { device: second, caller });
    assertEqual(page.items.length, 1, 'entries: the earlier one, not the one while removed');
  },
);

for (const [word, params] of [
  ['after-below', { after: -2 }],
  ['after-text', { after: '0' }],
  ['after-ahead', { after: 1_000_000 }],
  ['limit-zero', { limit: 0 }],
  ['limit-negative', { limit: -1 }],
  ['limit-text', { limit: 'x' }],
] as const) {
  sync.check(
    `refused-${word}`,
    { source: '04 §18, 02 §6', title: `${word} is bad_request` },
    async (context) => {
      const { caller } = await context.testAccount();
      // In a query every value is text, so a string of digits is an integer there.
      if (word === 'after-text' && caller.transport === 'https') {
        await context.expectError(caller, { method, params: { after: '00' } }, 'bad_request');
      } else await context.expectError(caller, { method, params }, 'bad_request');
    },
  );
}

sync.check(
  'limit-large',
  { source: '02 §6', title: "a limit above the relay's own limit is no error" },
  async (context) => {
    const owner = await context.testAccount();
    await fill(context, owner, 2);
    const page = await read(context, owner, { limit: Number.MAX_SAFE_INTEGER });
    assertEqual(page.items.length, 2, 'both entries');
  },
);

sync.check(
  'large-pages',
  { source: '04 §18', title: 'pages of large entries fit the transport and omit none' },
  async (context) => {
    const owner = await context.testAccount();
    const recipients = [owner.device.certificate];
    for (let index = 0; index < 6; index += 1) {
      const text = 'x'.repeat(190_000);
      const message = directMessage(owner.device, { to: owner.account.id, recipients, text });
      await context.expectOk(owner.caller, 'message.send', { ...message });
    }
    let count = 0;
    let after = -1;
    for (let more = true; more; ) {
      const page = await read(context, owner, { after });
      count += page.items.length;
      after = page.items.at(-1)?.sequence ?? after;
      more = page.has_more;
    }
    assertConforms(count === 6, `6 entries, not ${count}`);
  },
);

sync.check(
  'notice',
  {
    source: '04 §19, 02 §12.5',
    title: 'hints a new record to every device connection, and no repeat',
    transports: ['wss'],
  },
  async (context) => {
    const [from, to] = [await context.testAccount(), await context.testAccount({ devices: 2 })];
    const [first, second] = to.callers as [WssCaller, WssCaller];
    const params = grantedMessage(from.device, to.devices as Device[]);
    await context.expectOk(from.caller, 'message.send', params);
    const { head } = await first.notification('message.timeline.changed');
    await second.notification('message.timeline.changed');
    const { items } = await read(context, to);
    assertEqual(items.at(-1)?.sequence, head, "the head is the record's sequence");
    await context.expectOk(from.caller, 'message.send', params);
    await context.expectOk(from.caller, 'message.send', grantedMessage(from.device, [to.device]));
    const next = await first.notification('message.timeline.changed');
    assertConforms(Number(next.head) > Number(head), 'a repeat gives no hint, a new record does');
  },
);

status.check(
  'any-device',
  { source: '04 §14.3', title: 'any device of the account may read the status' },
  async (context) => {
    const [from, to] = [await context.testAccount({ devices: 2 }), await context.testAccount()];
    const params = grantedMessage(from.device, [to.device]);
    const sent = (await context.expectOk(from.caller, 'message.send', params)) as JsonObject;
    const { message_id } = params.envelope as JsonObject as { message_id: string };
    const other = from.callers[1] as TestAccount['caller'];
    const answer = await context.expectOk(other, 'message.delivery.status', { message_id });
    assertEqual((answer as JsonObject).accepted_at, sent.accepted_at, 'the same acceptance');
  },
);

status.check(
  'foreign',
  { source: '04 §14.3', title: "another account's message is not_found, also for its recipient" },
  async (context) => {
    const [from, to] = [await context.testAccount(), await context.testAccount()];
    const params = grantedMessage(from.device, [to.device]);
    await context.expectOk(from.caller, 'message.send', params);
    const { message_id } = params.envelope as JsonObject as { message_id: string };
    const call = { method: 'message.delivery.status', params: { message_id } };
    await context.expectError(to.caller, call, 'not_found');
  },
);

for (const [word, params] of [
  ['missing', {}],
  ['empty', { message_id: '' }],
  ['prefix', { message_id: 'MSG_AAECAwQFBgcICQoLDA0ODw' }],
  ['not-canonical', { message_id: 'msg_AAECAwQFBgcICQoLDA0ODB' }],
  ['too-short', { message_id: 'msg_AAECAwQFBgcICQoLDA0OD' }],
] as const) {
  status.check(
    `refused-${word}`,
    { source: '04 §2, §14.3', title: `a message_id that is ${word} is bad_request` },
    async (context) => {
      const { caller } = await context.testAccount();
      await context.expectError(
        caller,
        { method: 'message.delivery.status', params },
        'bad_request',
      );
    },
  );
}

status.check(
  'unknown',
  { source: '04 §14.3', title: 'a message never sent is not_found' },
  async (context) => {
    const { caller } = await context.testAccount();
    const params = { message_id: 'msg_AAECAwQFBgcICQoLDA0ODw' };
    await context.expectError(caller, { method: 'message.delivery.status', params }, 'not_found');
  },
);

export const messageTimelineChecks = [...status.list, ...sync.list];
