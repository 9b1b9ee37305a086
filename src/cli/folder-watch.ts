// Hears of files that change below some folders. Each folder is watched by itself: a folder sees its files
// replaced by rename, as many editors write them, while a watch on a file (Node's own recursive one on
// Linux, up to 22 at least) stays with what the name once led to, and hears nothing more.

import { type FSWatcher, readdirSync, statSync, watch } from "node:fs";
import { basename, join } from "node:path";

export interface FolderWatchOptions {
  /** Folders of these names are left alone. */
  readonly ignored: ReadonlySet<string>;
  readonly onChange: (path: string) => void;
}

export class FolderWatch {
  readonly #options: FolderWatchOptions;
  readonly #watchers = new Map<string, FSWatcher>();

  constructor(folders: readonly string[], options: FolderWatchOptions) {
    this.#options = options;
    for (const folder of folders) this.#add(folder, false);
  }

  /** `isNew`: what lies in it has come with it. */
  #add(folder: string, isNew: boolean): void {
    if (this.#watchers.has(folder)) return;
    const watcher = watch(folder, (kind, name) => {
      if (name !== null) this.#hear(kind, join(folder, name));
    });
    watcher.on("error", () => this.#forget(folder));
    this.#watchers.set(folder, watcher);
    for (const { path, isFolder } of this.#entries(folder)) {
      if (isFolder) this.#tryToAdd(path, isNew);
      else if (isNew) this.#options.onChange(path);
    }
  }

  /** What goes as quickly as it came, or may not be read, is not worth an end. */
  #tryToAdd(folder: string, isNew: boolean): void {
    try {
      this.#add(folder, isNew);
    } catch {
      this.#forget(folder);
    }
  }

  #hear(kind: "rename" | "change", path: string): void {
    this.#options.onChange(path);
    if (kind !== "rename" || this.#options.ignored.has(basename(path))) return;
    // A folder that was removed and made again is another one: its watch has to be made again too.
    this.#forget(path);
    if (statSync(path, { throwIfNoEntry: false })?.isDirectory()) this.#tryToAdd(path, true);
  }

  #entries(folder: string): { path: string; isFolder: boolean }[] {
    try {
      return readdirSync(folder, { withFileTypes: true })
        .filter(({ name }) => !this.#options.ignored.has(name))
        .map((one) => ({ path: join(folder, one.name), isFolder: one.isDirectory() }));
    } catch {
      return [];
    }
  }

  #forget(folder: string): void {
    for (const [path, watcher] of this.#watchers)
      if (path === folder || path.startsWith(join(folder, "/"))) {
        watcher.close();
        this.#watchers.delete(path);
      }
  }

  close(): void {
    for (const watcher of this.#watchers.values()) watcher.close();
    this.#watchers.clear();
  }
}
