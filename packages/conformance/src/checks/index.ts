import type { Check } from '../check.ts';
import { authChecks } from './auth.ts';
import { channelChecks } from './channels/index.ts';
import { deviceQueryChecks } from './device-query.ts';
import { deviceStatePublishChecks } from './device-state.ts';
import { groupChecks } from './groups/index.ts';
import { messageRefusalChecks } from './message-refusals.ts';
import { messageSendChecks } from './message-send.ts';
import { messageTimelineChecks } from './message-timeline.ts';
import { moduleChecks } from './modules.ts';
import { messageNestingChecks } from './nesting.ts';
import { profileChecks } from './profile.ts';
import { relayChecks } from './relay.ts';
import { relayToRelayChecks } from './relays/index.ts';
import { routeChecks } from './route.ts';
import { sessionChecks } from './session.ts';
import { transportChecks } from './transport.ts';

/** Every check, in the order of the method index (02 §14). */
export const checks: readonly Check[] = [
  ...transportChecks,
  ...relayChecks,
  ...moduleChecks,
  ...authChecks,
  ...sessionChecks,
  ...deviceStatePublishChecks,
  ...deviceQueryChecks,
  ...profileChecks,
  ...routeChecks,
  ...messageSendChecks,
  ...messageRefusalChecks,
  ...messageTimelineChecks,
  ...messageNestingChecks,
  ...groupChecks,
  ...channelChecks,
  ...relayToRelayChecks,
];
