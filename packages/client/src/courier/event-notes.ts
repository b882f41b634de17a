import type { AccountEvent } from '../events.ts';
import { channelNote } from './channel-output.ts';
import { groupNote } from './group-output.ts';
import { moreToRead, printable } from './output.ts';

/** Returns the note that every command prints for an event of a host, group or channel. */
export function hostedNote(event: AccountEvent): string | undefined {
  let note: string | undefined;
  if (event.kind === 'timeline-incomplete') note = `${event.relayId}: ${moreToRead}`;
  if ('groupId' in event) note = groupNote(event);
  if ('channelId' in event) note = channelNote(event);
  return note === undefined ? undefined : printable(note);
}
