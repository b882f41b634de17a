import { type ComponentType, h } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { text } from '../text/index.ts';

/**
 * Makes a component of one that is loaded when it is first shown. What cannot be loaded is said, with a
 * way to load the page again: Firefox keeps a failed import for as long as the page lives.
 *
 * @param isPart of a screen: nothing is shown until it is there, and the focus stays where it is
 *
 * @example
 * const GroupScreen = later(async () => (await import('../groups/group-screen.tsx')).GroupScreen);
 */
export function later<Props extends object>(
  load: () => Promise<ComponentType<Props>>,
  isPart = false,
): ComponentType<Props> {
  let loaded: ComponentType<Props> | undefined;
  return function Later(props) {
    /** `shown` is after it was loaded while somebody waited for it. */
    const [state, setState] = useState<'loading' | 'shown' | 'failed'>('loading');
    useEffect(() => {
      if (loaded !== undefined) return;
      const show = async () => {
        loaded = await load();
        setState('shown');
      };
      show().catch(() => setState('failed'));
    }, []);
    useEffect(() => {
      // The screen was changed before there was a heading to read on from.
      if (state === 'shown' && !isPart) document.querySelector<HTMLElement>('main h1')?.focus();
    }, [state]);
    if (loaded !== undefined) return h(loaded, props);
    if (state === 'loading') return isPart ? null : <p role="status">{text.starting}</p>;
    return (
      <p role="alert">
        {text.partMissing}{' '}
        <button type="button" onClick={() => location.reload()}>
          {text.reload}
        </button>
      </p>
    );
  };
}
