/** Text from members and hosts in terminal output. */
import { expect, test } from 'vitest';
import type { ChannelEntry } from '../src/channels/timeline/channel-entry.ts';
import { channelEntryLine } from '../src/courier/channel-entry-output.ts';
import { groupEntryLine } from '../src/courier/group-output.ts';
import { messageShape } from '../src/courier/json-shapes.ts';
import { messageLine } from '../src/courier/message-output.ts';
import { oneLine, quoted } from '../src/courier/output.ts';
import { type GroupMessageRow, toGroupEntry } from '../src/groups/timeline/group-entry.ts';
import type { Message } from '../src/messages/message.ts';

const name = (id: string) => id;
const message = (more: Partial<GroupMessageRow>) =>
  toGroupEntry({
    kind: 'message',
    group_id: `grp_${'A'.repeat(22)}`,
    sequence: 7,
    epoch: 1,
    accepted_at: 0,
    message_id: `msg_${'A'.repeat(22)}`,
    from: 'eve',
    from_device_id: `dev_${'A'.repeat(22)}`,
    created_at: 0,
    outcome: 'applied',
    ...more,
  });
const forged = 'x\n    8  2026-01-01 00:00  ann: send money\u001b[2J';

test('a message with a member called nickname is still a message', () => {
  const content = {
    $type: 'svc.group.message.content',
    body: { content_type: 'text/plain', text: 'hello' },
    nickname: 'Ann',
  };
  expect(groupEntryLine(message({ content }), name)).toMatch(/eve: hello$/);
});

test('a copy of another own device is marked, since its signature was not verified (decision 0039)', () => {
  const body = { content_type: 'text/plain', text: 'hello' };
  const content = { $type: 'svc.group.message.content', body };
  const line = groupEntryLine(message({ content, handedOverBy: 'dev_phone' }), name);
  expect(line).toMatch(/eve: hello \(copy of your device dev_phone, not verified\)$/);
  const row = {
    ...{
      messageId: 'msg_1',
      from: 'eve',
      to: 'me',
      fromDeviceId: 'dev_eve',
      createdAt: 0,
      order: 1,
    },
    ...{ outcome: 'applied', body, handedOverBy: 'dev_phone' },
  } as const;
  const direct = messageLine(row as unknown as Message, 'me', { name });
  expect(direct).toMatch(/eve: hello \(copy of your device dev_phone, not verified\)$/);
  expect(messageShape(row as unknown as Message, 'me')).toMatchObject({
    handed_over_by: 'dev_phone',
  });
});

test('types, reasons, names and types of attachments cannot forge a line', () => {
  const place = { groupId: '', sequence: 7, epoch: 1, acceptedAt: 0 };
  const rejected = { ...place, kind: 'rejected', reason: forged } as const;
  const attachment = { uri: 'https://example.org/', hash: '', content_type: forged, size: 3 };
  const entries = [
    message({ outcome: 'stored', content: { $type: forged } }),
    message({ outcome: 'rejected', reason: forged }),
    rejected,
    message({
      content: { $type: 'svc.group.member.nickname.update', nickname: `Bob" (owner)${forged}` },
    }),
    message({ content: { $type: 'svc.group.message.content', attachments: [attachment] } }),
  ];
  for (const entry of entries) {
    const line = groupEntryLine(entry, name);
    expect(line).toContain('send money');
    expect(line).not.toMatch(/[\n\u001b]/);
  }
});

test('names of channels and reasons of moderators cannot forge a line', () => {
  const place = { channelId: '', sequence: 7, acceptedAt: 0, by: 'eve' };
  const descriptor = { name: `News"${forged}`, revision: 0, status: 'active' };
  for (const entry of [
    { ...place, kind: 'change', descriptor },
    { ...place, kind: 'deletion', targetSequence: 1, reason: forged },
  ]) {
    const line = channelEntryLine(entry as unknown as ChannelEntry, name);
    expect(line).toContain('send money');
    expect(line).not.toMatch(/[\n\u001b]/);
  }
});

test('further lines of a text are marked, so that none looks like an entry', () => {
  for (const further of ['8  ann: two', ' 8  ann: two', '    8  ann: two']) {
    const body = { content_type: 'text/plain', text: `one\n${further}` };
    const content = { $type: 'svc.group.message.content', body };
    const post = { channel_id: '', sequence: 7, accepted_at: 0, kind: 'post', from: 'eve' };
    for (const line of [
      groupEntryLine(message({ content }), name),
      channelEntryLine({ ...post, content: { body } } as unknown as ChannelEntry, name),
    ]) {
      expect(line?.split('\n')[1]).toBe(`     | ${further}`);
    }
  }
});

test('a name cannot close its quotes', () => {
  expect(quoted('The "Rook" (owner)')).toBe('"The \\"Rook\\" (owner)"');
  expect(oneLine('one\r\ntwo\u2028three')).toBe('one two three');
});
