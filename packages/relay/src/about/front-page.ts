/** The page that people see at the root of a relay's address: no script, no request elsewhere. */
import { createHash } from 'node:crypto';
import type { RelayConfig } from '../config/index.ts';
import { relayCan, relayCannot } from './what-a-relay-sees.ts';

export interface FrontPageFacts {
  readonly config: Pick<RelayConfig, 'about' | 'blobs' | 'host' | 'limits' | 'name' | 'network'>;
  readonly relayId: string;
  /** Program and version; `undefined` if they are not told. */
  readonly software: string | undefined;
  /** HTTPS base addresses. */
  readonly https: readonly string[];
  /** Whether the relay serves the messenger under /app/. */
  readonly hasMessenger: boolean;
}

const style = `body{font:16px/1.6 system-ui,sans-serif;margin:2rem auto;max-width:44rem;padding:0 1rem;color:#222;background:#fff}
h1{margin-bottom:0}h2{margin-top:2rem}dt{font-weight:bold}dd{margin:0 0 .5rem;overflow-wrap:anywhere}a{color:#05c}
@media(prefers-color-scheme:dark){body{color:#ddd;background:#181818}a{color:#8bf}}`;

/** The page's policy: its own style, which the digest names, and nothing else. */
export const pagePolicy = [
  "default-src 'none'",
  `style-src 'sha256-${createHash('sha256').update(style).digest('base64')}'`,
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

const entities: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

const html = (text: string) => text.replace(/[&<>"']/g, (character) => entities[character] ?? '');

/**
 * Writes the page: name, operator, contact, terms, policy, limits, versions, and what the relay can
 * see. What the operator has not set is left out.
 */
export function frontPage({
  config,
  relayId,
  software,
  https,
  hasMessenger,
}: FrontPageFacts): string {
  const { about, blobs, host, limits } = config;
  const name = html(config.name);
  const operator = rows([
    ['Operator', about.operator],
    ['Contact', about.contact],
    ['Terms', about.terms],
    ['Privacy and moderation', about.policy],
  ]);
  const kept = rows([
    ['Messages', `stored for ${period(limits.messageRetention)}`],
    [
      'Groups',
      host.groups
        ? `hosted, messages stored for ${period(limits.groupMessageRetention)}`
        : 'not hosted',
    ],
    [
      'Channels',
      host.channels
        ? `hosted, posts stored for ${period(limits.channelTimelineRetention)}`
        : 'not hosted',
    ],
    [
      'Attachments',
      blobs.folder === ''
        ? 'not stored'
        : `up to ${size(blobs.maxBytes)} each, stored for ${period(blobs.retention)}`,
    ],
  ]);
  const technical = rows([
    ['Address', https[0] ?? ''],
    ['Relay ID', relayId],
    ['Network', config.network],
    ['Program', software ?? ''],
  ]);
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width,initial-scale=1">
<title>${name}</title>
<style>${style}</style></head><body>
<h1>${name}</h1>
<p>A relay of a network in which people own their accounts: it receives and stores messages for the devices of its people, who can move to another relay and keep their account.</p>
${hasMessenger ? '<p><a href="/app/">Open the messenger</a></p>' : ''}
${operator === '' ? '' : `<h2>Who runs it</h2><dl>${operator}</dl>`}
<h2>What it stores, and for how long</h2><dl>${kept}</dl>
<h2>What this relay can see about you</h2>
<p>The relay of an account can:</p>${list(relayCan)}
<p>It cannot:</p>${list(relayCannot)}
<h2>For programs</h2><dl>${technical}</dl>
<p><a href="/openrpc.json">openrpc.json</a>, <a href="/openapi.json">openapi.json</a></p>
</body></html>
`;
}

function rows(facts: readonly (readonly [string, string])[]): string {
  return facts
    .filter(([, text]) => text !== '')
    .map(([term, text]) => `<dt>${term}</dt><dd>${linked(text)}</dd>`)
    .join('');
}

/** A web or mail address becomes a link, other texts stay texts. */
function linked(text: string): string {
  const isAddress = /^(?:https:\/\/|mailto:)\S+$/.test(text);
  return isAddress ? `<a href="${html(text)}" rel="noreferrer">${html(text)}</a>` : html(text);
}

function list(items: readonly string[]): string {
  return `<ul>${items.map((item) => `<li>${html(item)}</li>`).join('')}</ul>`;
}

function period(seconds: number): string {
  const [length, unit] =
    seconds >= 172_800 ? [86_400, 'days'] : seconds >= 7_200 ? [3_600, 'hours'] : [1, 'seconds'];
  return `${Math.floor(seconds / length)} ${unit}`;
}

function size(bytes: number): string {
  return `${Math.floor(bytes / 1_048_576)} MiB`;
}
