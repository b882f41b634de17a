import type { AccountEvent } from '../events.ts';
import { channelNote } from './channel-output.ts';
import { groupNote } from './group-output.ts';
import { moreToRead, printable } from './output.ts';

/** What a person should be told of groups, channels and hosts, whatever the command is about. */
export function hostedNote(event: AccountEvent): string | undefined {
  let note: string | undefined;
  if (event.kind === 'behind') note = `${event.relayId}: ${moreToRead}`;
  if ('group_id' in event) note = groupNote(event);
  if ('channel_id' in event) note = channelNote(event);
  return note === undefined ? undefined : printable(note);
}
