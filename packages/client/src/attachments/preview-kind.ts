/** Which attachments an app may show by itself (04 §10). */
import { parseMediaType } from '@posthouse/protocol';

/** How to show an attachment; `file` is only offered to be saved. */
export type PreviewKind = 'image' | 'audio' | 'video' | 'file';

/**
 * Types that browsers decode without running anything. Images that are documents, such as SVG, can
 * hold scripts and addresses to load; PDF, HTML and all others are files.
 */
const previews: Readonly<Record<Exclude<PreviewKind, 'file'>, readonly string[]>> = {
  image: ['avif', 'bmp', 'gif', 'jpeg', 'png', 'webp'],
  audio: ['aac', 'flac', 'mp4', 'mpeg', 'ogg', 'wav', 'webm'],
  video: ['mp4', 'ogg', 'webm'],
};

/**
 * Returns how an attachment may be shown after `downloadContent` checked it. Give the bytes to the
 * platform with the returned type, not with the reference's text: it was written by a stranger.
 *
 * @returns the kind, and the media type without parameters; `application/octet-stream` for a file
 * @example
 * import { previewKind } from '@posthouse/client';
 * previewKind('image/png'); // { kind: 'image', type: 'image/png' }
 * previewKind('image/svg+xml'); // { kind: 'file', type: 'application/octet-stream' }
 */
export function previewKind(contentType: string): {
  readonly kind: PreviewKind;
  readonly type: string;
} {
  const media = parseMediaType(contentType);
  const kind = media?.type;
  if (media !== undefined && (kind === 'image' || kind === 'audio' || kind === 'video')) {
    if (previews[kind].includes(media.subtype)) return { kind, type: media.essence };
  }
  return { kind: 'file', type: 'application/octet-stream' };
}
