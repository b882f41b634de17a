/** An account of which each table of the database that can has something, by calls as far as there are any. */
import { createGroupSecret } from '@posthouse/protocol';
import { nodeRandom } from '@posthouse/protocol/node';
import { withholdPost } from '../../src/channels/index.ts';
import type { SqlValue } from '../../src/storage/types.ts';
import { TestChannel, text } from '../fixtures/channel.ts';
import { TestGroup } from '../fixtures/group.ts';
import type { Person } from '../fixtures/person.ts';
import { signIn } from '../fixtures/sign-in.ts';
import type { InProcessRelay } from '../support/in-process-relay.ts';

/** People with devices `phone` and `laptop`, the first, and `phone`, the others. */
interface People {
  /** Has something everywhere. */
  readonly ann: Person;
  readonly ben: Person;
  /** Has nothing in common with ann. */
  readonly cem: Person;
}

/** What cem stores has this in it. */
export const othersText = 'nothing of ann';

export async function furnish(relay: InProcessRelay, { ann, ben, cem }: People): Promise<void> {
  const { storage } = relay.context;
  for (const person of [ann, ben, cem]) {
    await person.publishProfile({ nickname: person === cem ? othersText : 'friend of ben' });
    await signIn(relay, person);
  }
  await send(relay, ben, ann);
  await send(relay, ann, ben);
  await send(relay, cem, ben);
  await groups(relay, { ann, ben, cem });
  await channels(relay, { ann, ben, cem });
  const now = relay.clock.now();
  const { account } = ann;
  const device = ann.device().deviceId;
  const other = `0x${'9'.repeat(40)}`;
  const rows: [table: string, row: Record<string, SqlValue>][] = [
    ['inactive_devices', { account, device_id: 'dev_old' }],
    [
      'staged_states',
      { account, revision: 9, staged_until: now + 60, state: '{}', address: '192.0.2.7' },
    ],
    ['seen_states', { account, revision: 1, digest: 'd' }],
    [
      'remote_devices',
      {
        ...{ account, device_id: 'dev_away', relay_id: other, certificate_id: 'c' },
        ...{ certificate: '{}', status: 'active', expires_at: now + 60, confirmed_at: now },
        ...{ stale: 0, generation: 1, failures: 0, next_check_at: now + 60 },
      },
    ],
    [
      'status_watchers',
      { account, device_id: device, relay_id: other, asked_at: now, failures: 0, changes: 0 },
    ],
    ['timeline_gaps', { account, device_id: device, sequence: 1 }],
    [
      'received_results',
      {
        ...{ sender: account, message_id: 'm', request: 'r', content: 'c' },
        ...{ accepted_at: now, keep_until: now + 60 },
      },
    ],
    [
      'deliveries',
      {
        ...{ sender: account, message_id: 'm', recipient: ben.account, envelope_id: 'e' },
        ...{ certificate_id: 'c', recipient_boxes: '[]', deadline: now + 60, destination: other },
        ...{ next_attempt_at: now + 60, attempts: 0 },
      },
    ],
    [
      'deliveries',
      {
        ...{ sender: ben.account, message_id: 'm', recipient: account, envelope_id: 'e' },
        ...{ certificate_id: 'c', recipient_boxes: '[]', deadline: now + 60, destination: other },
        ...{ next_attempt_at: now + 60, attempts: 0 },
      },
    ],
    ['blobs', { name: 'b', account, bytes: 1, counted: 2, keep_until: now + 60, state: 'stored' }],
    ['blob_usage', { account, counted: 2 }],
    ['blob_total', { slot: 1, counted: 2 }],
    ['daily_bytes', { owner: `account ${account}`, day: 20_000, bytes: 1 }],
    ['daily_bytes', { owner: `inbox ${account}`, day: 20_000, bytes: 2 }],
    ['registration_allowed', { account, allowed_at: now }],
    ['registration_claims', { account, invite: 'secret digest', claimed_at: now }],
    ['registration_requests', { account, address: '192.0.2.7', asked_at: now }],
    ['blocks', { kind: 'account', id: account, reason: 'spam', created_at: now }],
    ['auth_session_ends', { number: 1_000, account }],
    ['group_owner_reads', { group_id: 'g', device_id: device, knows_loss: 0 }],
    ['relay_facts', { name: 'relay', value: relay.relayId }],
    ['route_keys', { dht_key: 'k', account }],
    ['auth_challenges', { nonce_hash: 'n', account, origin: 'o', expires_at: now + 60 }],
    [
      'missed_relays',
      {
        ...{ relay_id: other, since: now, after_account: account, missed_at: now, misses: 1 },
        ...{ failures: 0, retry_at: now + 60 },
      },
    ],
  ];
  await storage.write('test', async (tx) => {
    for (const [table, row] of rows) {
      const names = Object.keys(row);
      await tx.run(
        `INSERT INTO ${table} (${names.join(', ')}) VALUES (${names.map(() => '?').join(', ')})
          ON CONFLICT DO NOTHING`,
        ...Object.values(row),
      );
    }
  });
}

async function send(relay: InProcessRelay, from: Person, to: Person): Promise<void> {
  const message = from.message(to, { authorization: to.grant(from), senders: ['phone'] });
  await relay.call('message.send', message, { session: from.session() });
}

async function groups(relay: InProcessRelay, { ann, ben, cem }: People): Promise<void> {
  const say = async (group: TestGroup, person: Person) => {
    const found = (await relay.rows('groups')).find(({ group_id }) => group_id === group.groupId);
    await group.send(person, Number(found?.epoch));
  };
  const own = await TestGroup.create(relay, ann, { name: '100 %' });
  await own.admit(ben);
  await say(own, ann);
  await own.requestRecovery(ben);
  const secret = createGroupSecret(nodeRandom);
  const session = ann.session();
  await relay.call('group.secret.rotation.prepare', own.preparation(secret), { session });
  const member = await TestGroup.create(relay, ben);
  await member.admit(ann);
  await member.requestRecovery(ann);
  await member.invite({ invitee: ann.account });
  const open = await TestGroup.create(relay, ben);
  await open.apply(ann, await open.invite());
  const closed = await TestGroup.create(relay, ben);
  await closed.admit(ann);
  await closed.ban([ann]);
  const apart = await TestGroup.create(relay, cem, { name: othersText });
  await say(apart, cem);
}

async function channels(relay: InProcessRelay, { ann, ben, cem }: People): Promise<void> {
  const own = await TestChannel.create(relay, ann);
  await own.edit(await own.post({ body: text('hello') }), { body: text('hello all') });
  const withheld = await own.post({ body: text('withheld') });
  const key = { channelId: own.channelId, sequence: withheld };
  await withholdPost(relay.context.storage, key, relay.clock.now());
  const moderated = await TestChannel.create(relay, ben, { moderators: [ann.account] });
  const sequence = await moderated.post({ body: text('of ben') });
  const report = {
    $type: moderated.descriptor.$type.replace('descriptor', 'post.report'),
    ...{ channel_id: moderated.channelId, target_sequence: sequence, reason: 'it is spam' },
  };
  await relay.call('channel.post.report', report, { session: ann.session() });
  await moderated.delete(sequence, {}, { by: ann });
  const apart = await TestChannel.create(relay, cem, { name: othersText });
  await apart.post({ body: text(othersText) });
}
