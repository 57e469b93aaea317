// A page that is opened from a folder may start no worker: browsers count every such file as another origin. The search
// of this site needs one. Here it runs in a hidden frame of the same page instead, with the worker's own way of talking.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(address) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      const ready = new Promise(resolve => {
        const attach = () => {
          document.body.append(frame);
          const inside = frame.contentWindow;
          const load = one => new Promise((done, failed) => {
            const script = inside.document.createElement("script");
            script.src = one;
            script.onload = done;
            script.onerror = failed;
            inside.document.head.append(script);
          });
          inside.importScripts = async (...all) => { for (const one of all) await load(one); };
          inside.postMessage = data => {
            const event = new MessageEvent("message", { data });
            this.dispatchEvent(event);
            if (this.onmessage) this.onmessage(event);
          };
          load(new URL(address, location.href).href).then(() => resolve(inside));
        };
        if (document.body) attach();
        else addEventListener("DOMContentLoaded", attach);
      });
      this.postMessage = data => ready.then(inside => {
        const event = new inside.MessageEvent("message", { data });
        inside.dispatchEvent(event);
        if (inside.onmessage) inside.onmessage(event);
      });
      this.terminate = () => frame.remove();
    }
  };
}
