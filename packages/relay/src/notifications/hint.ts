import type { NotificationName } from '@posthouse/protocol';

/** A hint, encoded once for all connections. */
export interface Hint {
  /** What it is about; a waiting hint is replaced by a newer one with the same key. */
  readonly key: string;
  /** The encoded JSON-RPC notification (02 §12). */
  readonly text: string;
  /** Head or revision: after one rank, lower ranks of the same key are outdated. Absent: always new. */
  readonly rank?: number;
}

/** `message.timeline.changed` (04 §19). */
export function timelineHint(head: number): Hint {
  return hint('timeline', 'message.timeline.changed', { head });
}

/** `device.state.changed` (03 §6). */
export function deviceStateHint(revision: number): Hint {
  return hint('device-state', 'device.state.changed', { revision });
}

/** `group.timeline.changed` (05 §15.2). */
export function groupTimelineHint(group: string, head: number): Hint {
  return hint(hintKeys(group).timeline, 'group.timeline.changed', { group_id: group, head });
}

/** `channel.timeline.changed` (06 §9.2). */
export function channelTimelineHint(channel: string, head: number): Hint {
  return hint(hintKeys(channel).timeline, 'channel.timeline.changed', {
    channel_id: channel,
    head,
  });
}

/** Lists of a group; their hints have no version. */
export type GroupList = 'applications' | 'recoveries';

/** `group.application.changed` or `group.member.recovery.changed` (05 §15.3, §15.4). */
export function groupListHint(group: string, list: GroupList): Hint {
  const method =
    list === 'applications' ? 'group.application.changed' : 'group.member.recovery.changed';
  return hint(hintKeys(group)[list], method, { group_id: group });
}

/** Returns the keys of all hints about a group or a channel; a channel has no lists. */
export function hintKeys(id: string): Readonly<Record<'timeline' | GroupList, string>> {
  return {
    timeline: `timeline ${id}`,
    applications: `applications ${id}`,
    recoveries: `recoveries ${id}`,
  };
}

function hint(
  key: string,
  method: NotificationName,
  params: {
    readonly group_id?: string;
    readonly channel_id?: string;
    readonly head?: number;
    readonly revision?: number;
  },
): Hint {
  const rank = params.head ?? params.revision;
  return {
    key,
    text: JSON.stringify({ jsonrpc: '2.0', method, params }),
    ...(rank !== undefined && { rank }),
  };
}
