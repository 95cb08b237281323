# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""The module's window over its logic. `qt` is a namespace of Qt's classes: that of 3D Slicer, or another binding's in tests."""
import glob
import html
import os
import shutil
import tempfile

from . import logic


def get(widget, name):
    """A property: Slicer's Qt has a value where others have a function."""
    value = getattr(widget, name)
    return value() if callable(value) else value


def connect(widget, signal, function):
    """Whatever the signal hands over, the function gets nothing."""
    def call(*_):
        function()
    name = signal.split("(")[0]
    if hasattr(getattr(widget, name), "connect"):
        getattr(widget, name).connect(call)
    else:
        widget.connect(signal, call)


class Panel:
    """`ui` has the widgets of Chunkwise.ui by name. `host` says where images are:
    visible_region(source) -> the region of the visible slice or of the ROI; extent() -> the extent of the image that it is
    a region of; show(result, is_preview); show_table(file). Stores of Zarr are shown by a level of so many bytes at most."""

    MOST_BYTES_SHOWN = 2**30

    def __init__(self, qt, ui, program, host):
        self.qt, self.ui, self.program, self.host = qt, ui, program, host
        self.steps = []
        self.values = {}
        self.editors = {}
        self.filter = None
        self.run = None
        self.devices = program.devices()
        self._fold()
        self._fill_tree()
        self._fill_machine()
        for widget, signal, function in (
            (ui.searchEdit, "textChanged(QString)", self._fill_tree),
            (ui.filterTree, "itemSelectionChanged()", self._choose_filter),
            (ui.advancedBox, "toggled(bool)", self._fold),
            (ui.addStepButton, "clicked()", self.add_step), (ui.removeStepButton, "clicked()", self.remove_step),
            (ui.saveStepsButton, "clicked()", self._save), (ui.loadStepsButton, "clicked()", self._load),
            (ui.sourceButton, "clicked()", self._browse_source), (ui.resultButton, "clicked()", self._browse_result),
            (ui.sourceEdit, "editingFinished()", self.update_plan), (ui.resultEdit, "editingFinished()", self.update_plan),
            (ui.memorySlider, "valueChanged(int)", self._show_memory), (ui.memorySlider, "sliderReleased()", self.update_plan),
            (ui.deviceBox, "currentIndexChanged(int)", self.update_plan),
            (ui.previewButton, "clicked()", self.preview), (ui.applyButton, "clicked()", self.apply),
            (ui.cancelButton, "clicked()", self.cancel), (ui.storeButton, "clicked()", self._browse_store),
            (ui.showButton, "clicked()", self.show_source),
        ):
            connect(widget, signal, function)
        self.timer = qt.QTimer()
        self.timer.setInterval(50)
        connect(self.timer, "timeout()", self._poll)

    # Filters and their parameters

    def _fill_tree(self):
        wanted = get(self.ui.searchEdit, "text").lower()
        self.ui.filterTree.clear()
        groups = {}
        for name, filter_ in sorted(self.program.commands.items()):
            if wanted not in (name + filter_.help + filter_.group).lower():
                continue
            if filter_.group not in groups:
                group = groups[filter_.group] = self.qt.QTreeWidgetItem(self.ui.filterTree)
                group.setText(0, filter_.group)
                group.setFlags(self.qt.Qt.ItemIsEnabled)
            item = self.qt.QTreeWidgetItem(groups[filter_.group])
            item.setText(0, name)
            item.setToolTip(0, filter_.help)
        self.ui.filterTree.expandAll()

    def _choose_filter(self):
        items = self.ui.filterTree.selectedItems()
        if len(items) and items[0].text(0) in self.program.commands:
            self.choose(items[0].text(0))

    def choose(self, name, values=None):
        """Shows a filter with its defaults, or with these values."""
        self.filter = self.program.commands[name]
        self.values = dict(values or {})
        self.editors = {}
        link = f' <a href="{html.escape(self.filter.page)}">Formula and parameters</a>' if self.filter.page else ""
        self.ui.filterHelp.setText(html.escape(self.filter.help, quote=False) + link)
        forms = (self.ui.parameterForm, self.ui.advancedForm)
        for form in forms:
            while get(form, "rowCount"):
                form.removeRow(0)
        for parameter in self.filter.parameters:
            if not parameter.is_of_machine:
                forms[parameter.advanced].addRow(parameter.label, self._editor(parameter))
        self.ui.advancedBox.setVisible(get(self.ui.advancedForm, "rowCount") > 0)
        self.update_plan()

    def _fold(self):
        """Advanced parameters are shown while their box is checked."""
        self.ui.advancedWidget.setVisible(get(self.ui.advancedBox, "checked" if hasattr(self.ui.advancedBox, "checked") else "isChecked"))

    def _editor(self, parameter):
        value = self.values.get(parameter.flag, parameter.default)
        if parameter.kind == "boolean":
            editor = self.qt.QCheckBox()
            editor.setChecked(value in (True, "true"))
            signal, read = "toggled(bool)", lambda: "true" if get(editor, "checked" if hasattr(editor, "checked") else "isChecked") else "false"
        elif parameter.choices:
            editor = self.qt.QComboBox()
            for choice in parameter.choices:
                editor.addItem(choice)
            editor.setCurrentIndex(parameter.choices.index(value))
            signal, read = "currentIndexChanged(int)", lambda: get(editor, "currentText")
        else:
            # Numbers too: one, or one for each axis, or a word.
            editor = self.qt.QLineEdit()
            editor.setText(str(value))
            signal, read = "editingFinished()", lambda: get(editor, "text").strip()
        editor.setToolTip(parameter.help)
        self.editors[parameter.flag] = editor

        def changed():
            self.values[parameter.flag] = read()
            self.update_plan()

        connect(editor, signal, changed)
        return editor

    # Sequences

    def add_step(self):
        if not self.filter:
            return
        if self.filter.name in logic.OPERATIONS:
            self.say(f"{self.filter.name} is no step of a sequence: it needs the whole image; apply it by itself")
            return
        self.steps.append((self.filter.name, dict(self.values)))
        self._show_steps()

    def remove_step(self):
        row = get(self.ui.stepList, "currentRow")
        if 0 <= row < len(self.steps):
            del self.steps[row]
            self._show_steps()

    def _show_steps(self):
        self.ui.stepList.clear()
        for name, values in self.steps:
            self.ui.stepList.addItem(" ".join([name, *self.program.commands[name].words(values, machine=False)]))
        self.update_plan()

    def save_steps(self, file):
        with open(file, "w", encoding="utf-8") as stream:
            stream.write(self.job().to_json())

    def load_steps(self, file):
        with open(file, encoding="utf-8") as stream:
            steps = logic.steps_from_json(stream.read(), self.program.commands)
        self.steps = steps if len(steps) > 1 else []
        if len(steps) == 1:
            self.choose(*steps[0])
        self._show_steps()

    def _save(self):
        file = self.qt.QFileDialog.getSaveFileName(None, "Save the sequence", "", "JSON (*.json)")
        self._do(self.save_steps, file)

    def _load(self):
        file = self.qt.QFileDialog.getOpenFileName(None, "Load a sequence", "", "JSON (*.json)")
        self._do(self.load_steps, file)

    def _do(self, function, file):
        file = file if isinstance(file, str) else file[0]
        if file:
            try:
                function(file)
            except (OSError, logic.ChunkwiseError) as error:
                self.say(str(error))

    # Images and the machine

    def _browse_source(self):
        self._do(self.ui.sourceEdit.setText, self.qt.QFileDialog.getOpenFileName(None, "Image"))
        self.update_plan()

    def _browse_store(self):
        self._do(self.ui.sourceEdit.setText, self.qt.QFileDialog.getExistingDirectory(None, "Store of Zarr"))
        self.update_plan()

    def _browse_result(self):
        self._do(self.ui.resultEdit.setText, self.qt.QFileDialog.getSaveFileName(None, "Result"))
        self.update_plan()

    def _fill_machine(self):
        self.ui.deviceBox.addItem("Automatic")
        self.ui.deviceBox.addItem(f"CPU, {self.devices['cpu']['threads']} threads")
        for device in self.devices["devices"]:
            self.ui.deviceBox.addItem(f"{device['name']}, {device['memoryFree'] / 2**30:.1f} GiB free")
        self._show_memory()

    def memory(self):
        """The share of what is free that the slider says, in bytes; 0 if the system does not tell."""
        return self.devices["cpu"]["memoryAvailable"] * get(self.ui.memorySlider, "value") // 100

    def _show_memory(self):
        self.ui.memoryLabel.setText(f"{self.memory() / 2**30:.1f} GiB" if self.memory() else "unknown")

    def machine(self):
        index = get(self.ui.deviceBox, "currentIndex")
        machine = {"memory": logic.memory_text(self.memory())} if self.memory() else {}
        if index == 1:
            machine["backend"] = "cpu"
        elif index > 1:
            machine.update(backend="cuda", devices=str(self.devices["devices"][index - 2]["ordinal"]))
        return machine

    # Runs

    def sources(self):
        text = get(self.ui.sourceEdit, "text").strip()
        return [text] if os.path.exists(text) else sorted(glob.glob(text)) or [text]

    def job(self, region=None, result=None):
        steps = self.steps or ([(self.filter.name, dict(self.values))] if self.filter else [])
        return logic.Job(steps, self.sources()[0], result or get(self.ui.resultEdit, "text").strip(), self.machine(), region)

    def is_batch(self):
        return "{" in get(self.ui.resultEdit, "text")

    def say(self, text, is_error=False):
        self.ui.statusLabel.setText(text)

    def update_plan(self):
        """The planner's message on the present settings; red if the run is impossible."""
        self.ui.planLabel.setStyleSheet("")
        self.ui.planLabel.setText("")
        self.ui.commandEdit.setText("")
        job = self.job(result=os.path.join(tempfile.gettempdir(), "plan.mha") if self.is_batch() else None)
        if not (job.steps and job.source and job.result):
            return
        try:
            self.ui.commandEdit.setText(self.program.command_line(self.job()))
            self.ui.commandEdit.setCursorPosition(0)  # shows the command's beginning
            plan = self.program.plan(job)
            self.ui.planLabel.setText(logic.describe_plan(plan) if plan else "")
        except logic.ChunkwiseError as error:
            self.ui.planLabel.setText(str(error))
            self.ui.planLabel.setStyleSheet("color: red")

    def _begin(self, run, result, is_preview, is_temporary=False):
        self.run, self.result, self.is_preview, self.is_temporary = run, result, is_preview, is_temporary
        self._enable(True)
        self.ui.progressBar.setRange(0, 100 if run.has_progress else 0)  # without a share: busy
        self.say("preview..." if is_preview else "running...")
        self.timer.start()

    def _enable(self, runs):
        self.ui.applyButton.setEnabled(not runs)
        self.ui.previewButton.setEnabled(not runs)
        self.ui.cancelButton.setEnabled(runs)

    def apply(self):
        try:
            job = self.job()
            if self.is_batch():
                self._begin(self.program.batch(job, self.sources(), job.result), None, False)
            else:
                self._begin(self.program.start(job), job.result, False)
        except logic.ChunkwiseError as error:
            self.say(str(error))

    def preview(self):
        """The visible part, which is exactly that part of the result."""
        try:
            source = self.sources()[0]
            region = self.host.visible_region(source)
            if logic.is_store(source):
                # Another level may be visible than the one that is computed.
                region = logic.scale_region(region, self.host.extent(), self.program.image(source)[0])
            result = os.path.join(tempfile.mkdtemp(prefix="chunkwise-"), "preview.mha")
            self._begin(self.program.start(self.job(region, result)), result, True, True)
        except logic.ChunkwiseError as error:
            self.say(str(error))

    def show_source(self):
        try:
            self._show(self.sources()[0], False)
        except logic.ChunkwiseError as error:
            self.say(str(error))

    def _show(self, image, is_preview):
        """Tables as such. Stores become files first, by another run."""
        if image.lower().endswith(".csv"):
            self.host.show_table(image)
            return
        if not logic.is_store(image):
            self.host.show(image, is_preview)
            return
        level = self.program.level_to_show(image, self.MOST_BYTES_SHOWN)
        file = os.path.join(tempfile.mkdtemp(prefix="chunkwise-"), os.path.basename(image.rstrip("/")).split(".")[0] + ".mha")
        self._begin(self.program.start(logic.Job([("identity", {})], level, file)), file, is_preview, True)

    def cancel(self):
        if self.run:
            self.run.cancel()

    def _poll(self):
        if not self.run:
            self.timer.stop()
            return
        if self.run.has_progress:
            self.ui.progressBar.setValue(int(100 * self.run.progress))
        if self.run.is_running():
            return
        self.timer.stop()
        run, self.run = self.run, None
        self.ui.progressBar.setRange(0, 100)
        self.ui.progressBar.setValue(0)
        folder = os.path.dirname(self.result) if self.is_temporary else None
        self._enable(False)
        try:
            warnings = run.wait()
            self.ui.progressBar.setValue(100)
            self.say("; ".join(["done", *warnings]))
            if self.result:
                self._show(self.result, self.is_preview)
        except logic.ChunkwiseError as error:
            self.say(str(error))
        finally:
            if folder:
                shutil.rmtree(folder, ignore_errors=True)
