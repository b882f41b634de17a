import type { Capability } from '@posthouse/protocol';
import type { RelayConfig } from '../../config/index.ts';
import type { Handler } from '../../dispatch/handler.ts';
import type { RelayLimits } from '../../limits.ts';
import { softwareOf } from '../software.ts';

/** What the relay says about itself and its limits (02 §11.2). */
export function relayInfo(options: {
  readonly name: string;
  readonly modules: readonly Capability[];
  /** When the database was last put back to an earlier state, Unix seconds. */
  readonly restoredAt?: number | undefined;
  /** Who runs the relay, and whether it tells its version; what is empty is left out. */
  readonly about?: Partial<RelayConfig['about']>;
}): Handler<'relay.info'> {
  const { name, modules, restoredAt, about = {} } = options;
  const { version: _, ...words } = about;
  const software = softwareOf(about);
  const stated = Object.fromEntries(Object.entries(words).filter(([, text]) => text !== ''));
  return async ({ identity, clock, limits }) => ({
    result: {
      relay_id: identity.relayId,
      name,
      server_time: clock.now(),
      ...stated,
      ...(software !== undefined && { software }),
      ...(restoredAt !== undefined && { restored_at: restoredAt }),
      limits: {
        message_retention: limits.messageRetention,
        clock_tolerance: limits.authClockTolerance,
        future_tolerance: limits.futureTolerance,
        max_delivery_age: limits.deliveryAgeLimit,
        ...(modules.includes('group.host.v1') ? groupLimits(limits) : {}),
        ...(modules.includes('channel.host.v1') ? channelLimits(limits) : {}),
      },
    },
  });
}

function groupLimits(limits: RelayLimits) {
  return {
    group_message_retention: limits.groupMessageRetention,
    max_group_members: limits.groupMembers,
    max_group_subscriptions: limits.groupSubscriptions,
    max_group_invite_ttl: limits.groupInviteTtl,
    max_group_bans: limits.groupBans,
  };
}

function channelLimits(limits: RelayLimits) {
  return {
    channel_timeline_retention: limits.channelTimelineRetention,
    max_channel_subscriptions: limits.channelSubscriptions,
  };
}
