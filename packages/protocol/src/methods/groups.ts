import { GroupId } from '../groups/ids.ts';
import { type GroupMethodName, groupParams } from '../groups/requests.ts';
import { groupResults } from '../groups/responses.ts';
import { limits } from '../limits.ts';
import { Counter, Type } from '../schema.ts';
import { defineMethod, type NotificationDefinition } from './definition.ts';

/** Returns what all group methods share, with the method's parameters and result of chapter 05. */
function method<N extends GroupMethodName>(name: N) {
  return {
    name,
    session: 'device',
    capability: 'group.host.v1',
    params: groupParams[name],
    result: groupResults[name],
  } as const;
}

/** Depth of what comes back as `result.events[…].payload` or `result.keys[…].client_secret_box`. */
const deepest = limits.jsonDepth - 4;

/** Returns a method whose parameters come back. */
function kept<N extends GroupMethodName>(name: N) {
  return { ...method(name), depth: deepest } as const;
}

/** Of a batch: the body of its event, and boxes by account. Other members are not stored. */
const batchDepth = { approval: deepest, client_secret_boxes: deepest + 1 };

/** The methods of chapter 05, section 13, by name. */
export const groupMethods = {
  'group.create': defineMethod({
    ...method('group.create'),
    memberDepth: { create: deepest, client_secret_box: deepest },
    http: ['POST'],
    source: '05 §13.2',
  }),
  'group.resolve': defineMethod({
    ...method('group.resolve'),
    http: ['GET'],
    source: '05 §13.3',
  }),
  'group.sync': defineMethod({
    ...method('group.sync'),
    http: ['GET'],
    page: 'sequence',
    source: '05 §13.4',
  }),
  'group.close': defineMethod({
    ...kept('group.close'),
    http: ['DELETE'],
    source: '05 §13.5',
  }),
  'group.update': defineMethod({
    ...kept('group.update'),
    http: ['PATCH'],
    source: '05 §13.6',
  }),
  'group.role.update': defineMethod({
    ...kept('group.role.update'),
    http: ['PUT'],
    source: '05 §13.7',
  }),
  'group.owner.transfer': defineMethod({
    ...kept('group.owner.transfer'),
    http: ['POST'],
    source: '05 §13.8',
  }),
  'group.invite.create': defineMethod({
    ...kept('group.invite.create'),
    http: ['POST'],
    source: '05 §13.9',
  }),
  'group.invite.resolve': defineMethod({
    ...method('group.invite.resolve'),
    http: ['GET'],
    source: '05 §13.10',
  }),
  'group.invite.list': defineMethod({
    ...method('group.invite.list'),
    http: ['GET'],
    page: 'cursor',
    source: '05 §13.11',
  }),
  'group.invite.revoke': defineMethod({
    ...method('group.invite.revoke'),
    http: ['DELETE'],
    source: '05 §13.12',
  }),
  'group.application.submit': defineMethod({
    ...kept('group.application.submit'),
    http: ['POST'],
    source: '05 §13.13',
  }),
  'group.application.list': defineMethod({
    ...method('group.application.list'),
    http: ['GET'],
    page: 'cursor',
    source: '05 §13.14',
  }),
  'group.application.approve': defineMethod({
    ...method('group.application.approve'),
    memberDepth: batchDepth,
    http: ['POST'],
    source: '05 §13.15',
  }),
  'group.application.reject': defineMethod({
    ...method('group.application.reject'),
    http: ['DELETE'],
    source: '05 §13.16',
  }),
  'group.member.leave': defineMethod({
    ...kept('group.member.leave'),
    http: ['DELETE'],
    source: '05 §13.17',
  }),
  'group.member.remove': defineMethod({
    ...kept('group.member.remove'),
    http: ['DELETE'],
    source: '05 §13.18',
  }),
  'group.member.ban': defineMethod({
    ...kept('group.member.ban'),
    http: ['PUT'],
    source: '05 §13.19',
  }),
  'group.member.unban': defineMethod({
    ...kept('group.member.unban'),
    http: ['DELETE'],
    source: '05 §13.20',
  }),
  'group.member.recovery.submit': defineMethod({
    ...kept('group.member.recovery.submit'),
    http: ['POST'],
    source: '05 §13.21',
  }),
  'group.member.recovery.list': defineMethod({
    ...method('group.member.recovery.list'),
    http: ['GET'],
    page: 'cursor',
    source: '05 §13.22',
  }),
  'group.member.recovery.approve': defineMethod({
    ...method('group.member.recovery.approve'),
    memberDepth: batchDepth,
    http: ['POST'],
    source: '05 §13.23',
  }),
  'group.member.recovery.reject': defineMethod({
    ...method('group.member.recovery.reject'),
    http: ['DELETE'],
    source: '05 §13.24',
  }),
  'group.key.sync': defineMethod({
    ...method('group.key.sync'),
    http: ['GET'],
    page: 'sequence',
    source: '05 §13.25',
  }),
  'group.secret.rotation.prepare': defineMethod({
    ...method('group.secret.rotation.prepare'),
    memberDepth: { client_secret_boxes: deepest + 1 },
    http: ['PATCH'],
    source: '05 §13.26',
  }),
  'group.secret.rotation.commit': defineMethod({
    ...kept('group.secret.rotation.commit'),
    http: ['POST'],
    source: '05 §13.27',
  }),
  'group.message.send': defineMethod({
    ...kept('group.message.send'),
    http: ['POST'],
    source: '05 §13.28',
  }),
  'group.subscribe': defineMethod({
    ...method('group.subscribe'),
    http: [],
    source: '05 §13.29',
  }),
};

/** The notifications of chapter 05, section 15, by name. */
export const groupNotifications = {
  'group.timeline.changed': {
    name: 'group.timeline.changed',
    params: Type.Object({ group_id: GroupId, head: Counter }),
    capability: 'group.host.v1',
    source: '05 §15.2',
  },
  'group.application.changed': {
    name: 'group.application.changed',
    params: Type.Object({ group_id: GroupId }),
    capability: 'group.host.v1',
    source: '05 §15.3',
  },
  'group.member.recovery.changed': {
    name: 'group.member.recovery.changed',
    params: Type.Object({ group_id: GroupId }),
    capability: 'group.host.v1',
    source: '05 §15.4',
  },
} as const satisfies Record<string, NotificationDefinition>;
